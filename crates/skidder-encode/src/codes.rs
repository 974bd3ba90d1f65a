//! Canonical prefix codes of bounded length, from counts.

/// Longest code: four literals fit into 64 bits beside seven that wait.
pub(crate) const LENGTH_MAX: usize = 14;

/// Lengths of codes for `counts`, none longer than `length_max`; 0 for what was not counted.
///
/// Two-queue Huffman, then codes that are too long are cut and the sum of Kraft is repaired by
/// making the longest of the others longer.
pub(crate) fn lengths(counts: &[u32], length_max: usize, lengths: &mut [u8]) {
    let mut order: Vec<(u32, u16)> = Vec::with_capacity(counts.len());
    for (symbol, &count) in counts.iter().enumerate() {
        lengths[symbol] = 0;
        if count > 0 {
            order.push((count, symbol as u16));
        }
    }
    if order.len() < 2 {
        // A lone symbol has a code of one bit (RFC 1951, 3.2.7).
        for &(_, symbol) in &order {
            lengths[symbol as usize] = 1;
        }
        return;
    }
    order.sort_unstable();
    let mut of_length = [0_u32; 33];
    depths(&order, &mut of_length);
    limit(&mut of_length, length_max);
    // The rarest symbols get the longest codes.
    let mut next = order.iter();
    for length in (1..=length_max).rev() {
        for &(_, symbol) in next.by_ref().take(of_length[length] as usize) {
            lengths[symbol as usize] = length as u8;
        }
    }
}

/// How many leaves there are at each depth of the tree of `order`, which is sorted by count.
fn depths(order: &[(u32, u16)], of_length: &mut [u32; 33]) {
    let leaves = order.len();
    // Nodes in the order in which they are made: their weights rise.
    let mut weights: Vec<u64> = Vec::with_capacity(leaves);
    let mut parents = vec![0_u16; 2 * leaves];
    let (mut leaf, mut node) = (0, 0);
    for made in 0..leaves - 1 {
        let mut sum = 0;
        for _ in 0..2 {
            let lighter = leaf < leaves
                && (node >= weights.len() || u64::from(order[leaf].0) <= weights[node]);
            if lighter {
                sum += u64::from(order[leaf].0);
                parents[leaf] = made as u16;
                leaf += 1;
            } else {
                sum += weights[node];
                parents[leaves + node] = made as u16;
                node += 1;
            }
        }
        weights.push(sum);
    }
    let root = leaves - 2;
    let mut depth = vec![0_u8; leaves];
    for node in (0..root).rev() {
        depth[node] = depth[parents[leaves + node] as usize] + 1;
    }
    for &parent in &parents[..leaves] {
        let at = (depth[parent as usize] as usize + 1).min(of_length.len() - 1);
        of_length[at] += 1;
    }
}

/// Moves leaves up to `length_max` and keeps the code complete.
fn limit(of_length: &mut [u32; 33], length_max: usize) {
    let long: u32 = of_length[length_max + 1..].iter().sum();
    of_length[length_max + 1..].fill(0);
    of_length[length_max] += long;
    let full = 1_u64 << length_max;
    let mut used: u64 =
        (1..=length_max).map(|length| u64::from(of_length[length]) << (length_max - length)).sum();
    while used > full {
        // One of the longest goes below a shorter leaf, which gets one bit longer with it.
        let shorter = (1..length_max).rev().find(|&length| of_length[length] > 0);
        let Some(shorter) = shorter else { unreachable!("there are fewer symbols than codes") };
        of_length[length_max] -= 1;
        of_length[shorter] -= 1;
        of_length[shorter + 1] += 2;
        used -= 1;
    }
}

/// The codes of `lengths`, each with its bits in the order in which they are written.
pub(crate) fn codes(lengths: &[u8], each: &mut dyn FnMut(usize, u16)) {
    let mut next = [0_u16; 17];
    let mut count = [0_u16; 16];
    for &length in lengths {
        count[length as usize] += 1;
    }
    count[0] = 0;
    for length in 1..16 {
        next[length + 1] = (next[length] + count[length]) << 1;
    }
    for (symbol, &length) in lengths.iter().enumerate() {
        if length > 0 {
            let code = next[length as usize];
            next[length as usize] += 1;
            each(symbol, code.reverse_bits() >> (16 - length));
        }
    }
}
