//! What the program consists of: the files that are loaded, their symbols, and their tables for unwinding.

use data_encoding::HEXLOWER;
use framehop::{
    CacheNative, ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, UnwindRegsNative,
    Unwinder as _, UnwinderNative,
};
use object::elf::PF_X;
use object::read::ReadCache;
use object::{
    Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, SegmentFlags,
    SymbolKind,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;

/// The files with code that are loaded into this process.
#[derive(Debug)]
pub struct Objects {
    list: Vec<Loaded>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) path: String,
    /// All of its addresses.
    pub(crate) range: Range<u64>,
    /// Where its code is loaded, and the place of that in the file.
    pub(crate) code: Range<u64>,
    pub(crate) offset: u64,
    /// As hexadecimal digits; empty if it has none.
    pub(crate) build_id: String,
    /// Added to an address of the file.
    bias: u64,
    unwind: Unwind,
}

/// The name of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    pub(crate) shown: String,
    /// As in the file.
    pub(crate) symbol: String,
}

#[derive(Debug, Default)]
struct Unwind {
    base: u64,
    text: Option<Range<u64>>,
    frames: Option<(Range<u64>, Vec<u8>)>,
    index: Option<(Range<u64>, Vec<u8>)>,
    got: Option<Range<u64>>,
}

/// A line of `/proc/self/maps` with the name of a file.
struct Mapped<'a> {
    range: Range<u64>,
    is_code: bool,
    offset: u64,
    path: &'a str,
}

impl Objects {
    /// Those of this process. Files that cannot be read are left out; the program itself must be there.
    pub fn of_this_process() -> io::Result<Self> {
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        let own = std::fs::read_link("/proc/self/exe")?;
        let own = own.to_string_lossy().into_owned();
        let mut by_path: BTreeMap<&str, Vec<Mapped<'_>>> = BTreeMap::new();
        for mapped in maps.lines().filter_map(mapped) {
            by_path.entry(mapped.path).or_default().push(mapped);
        }
        let mut list = Vec::new();
        for (path, parts) in by_path {
            let Some(code) = parts.iter().find(|part| part.is_code) else { continue };
            // The program may have been replaced on the disk since.
            let file = if path == own { "/proc/self/exe" } else { path };
            match Loaded::read(file, path, code, &parts) {
                Ok(loaded) => list.push(loaded),
                Err(error) if path == own => return Err(error),
                Err(_) => {}
            }
        }
        // pprof takes the first for the program.
        list.sort_by_key(|loaded| loaded.path != own);
        Ok(Self { list })
    }

    /// The list, the program first.
    pub(crate) fn list(&self) -> &[Loaded] {
        &self.list
    }

    /// Which of them has an address.
    pub(crate) fn position(&self, address: u64) -> Option<usize> {
        self.list.iter().position(|loaded| loaded.range.contains(&address))
    }

    /// What finds the callers on a stack.
    pub(crate) fn unwinding(&self) -> Unwinding {
        let mut unwinder = UnwinderNative::new();
        for loaded in &self.list {
            let Unwind { base, text, frames, index, got } = &loaded.unwind;
            let section = |it: &Option<(Range<u64>, Vec<u8>)>| match it {
                Some((range, data)) => (Some(range.clone()), Some(data.clone())),
                None => (None, None),
            };
            let (eh_frame_svma, eh_frame) = section(frames);
            let (eh_frame_hdr_svma, eh_frame_hdr) = section(index);
            let info = ExplicitModuleSectionInfo {
                base_svma: *base,
                text_svma: text.clone(),
                got_svma: got.clone(),
                eh_frame_svma,
                eh_frame,
                eh_frame_hdr_svma,
                eh_frame_hdr,
                ..Default::default()
            };
            let at = loaded.bias.wrapping_add(*base);
            unwinder.add_module(Module::new(loaded.path.clone(), loaded.range.clone(), at, info));
        }
        Unwinding { unwinder, cache: CacheNative::new() }
    }

    /// The names of the functions that have these addresses, which are in order.
    pub(crate) fn names(&self, addresses: &[u64]) -> Vec<Option<Name>> {
        let mut names = vec![None; addresses.len()];
        for loaded in &self.list {
            let begin = addresses.partition_point(|address| *address < loaded.range.start);
            let end = addresses.partition_point(|address| *address < loaded.range.end);
            if begin < end {
                // Without names a profile is still one.
                drop(loaded.names(&addresses[begin..end], &mut names[begin..end]));
            }
        }
        names
    }
}

fn mapped(line: &str) -> Option<Mapped<'_>> {
    let mut words = line.split_ascii_whitespace();
    let (from, to) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let offset = u64::from_str_radix(words.next()?, 16).ok()?;
    let path = line.find('/').map(|at| &line[at..])?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapped {
        range: number(from)?..number(to)?,
        is_code: rights.as_bytes().get(2) == Some(&b'x'),
        offset,
        path,
    })
}

fn bad(error: object::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

impl Loaded {
    fn read(file: &str, path: &str, code: &Mapped<'_>, parts: &[Mapped<'_>]) -> io::Result<Self> {
        let cache = ReadCache::new(File::open(file)?);
        let object = object::File::parse(&cache).map_err(bad)?;
        let length = code.range.end - code.range.start;
        let segment = object.segments().find(|segment| {
            let is_code =
                matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.0 & PF_X.0 != 0);
            // A mapping begins at the page in which the segment does.
            is_code && (code.offset..code.offset + length).contains(&segment.file_range().0)
        });
        let segment = segment.ok_or(io::ErrorKind::InvalidData)?;
        let in_file =
            code.offset.wrapping_sub(segment.file_range().0).wrapping_add(segment.address());
        let range_of = |name: &str| {
            let section = object.section_by_name(name)?;
            Some(section.address()..section.address() + section.size())
        };
        let data_of = |name: &str| {
            let section = object.section_by_name(name)?;
            Some((range_of(name)?, section.uncompressed_data().ok()?.into_owned()))
        };
        let unwind = Unwind {
            base: object.segments().map(|segment| segment.address()).min().unwrap_or(0),
            text: range_of(".text"),
            frames: data_of(".eh_frame"),
            index: data_of(".eh_frame_hdr"),
            got: range_of(".got"),
        };
        let id = object.build_id().ok().flatten().unwrap_or_default();
        let start = parts.iter().map(|part| part.range.start).min().unwrap_or(code.range.start);
        let end = parts.iter().map(|part| part.range.end).max().unwrap_or(code.range.end);
        Ok(Self {
            path: path.to_owned(),
            range: start..end,
            code: code.range.clone(),
            offset: code.offset,
            build_id: HEXLOWER.encode(id),
            bias: code.range.start.wrapping_sub(in_file),
            unwind,
        })
    }

    /// Puts the names of functions at addresses, which are in order, into `names`.
    fn names(&self, addresses: &[u64], names: &mut [Option<Name>]) -> io::Result<()> {
        let own = std::fs::read_link("/proc/self/exe")?;
        let is_own = own.to_string_lossy() == self.path;
        let file = if is_own { "/proc/self/exe" } else { &self.path };
        let cache = ReadCache::new(File::open(file)?);
        let object = object::File::parse(&cache).map_err(bad)?;
        // Of the functions that begin at or before an address, the last one.
        let mut best: Vec<Option<(u64, u64, String)>> = vec![None; addresses.len()];
        for symbol in object.symbols().chain(object.dynamic_symbols()) {
            if symbol.kind() != SymbolKind::Text || symbol.is_undefined() {
                continue;
            }
            let start = symbol.address().wrapping_add(self.bias);
            let size = symbol.size().max(1);
            let from = addresses.partition_point(|address| *address < start);
            let to = addresses.partition_point(|address| *address < start + size);
            for place in &mut best[from..to] {
                let is_better = place.as_ref().is_none_or(|(other, _, _)| *other < start);
                if is_better && let Ok(name) = symbol.name() {
                    *place = Some((start, size, name.to_owned()));
                }
            }
        }
        for (found, name) in best.into_iter().zip(names) {
            if let Some((_, _, symbol)) = found {
                let shown = format!("{:#}", rustc_demangle::demangle(&symbol));
                *name = Some(Name { shown, symbol });
            }
        }
        Ok(())
    }
}

/// Finds the callers on a stack.
pub(crate) struct Unwinding {
    unwinder: UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

impl Unwinding {
    /// Passes the innermost address and those of the calls above it to `each`, until it returns false.
    /// `registers` are link, stack and frame.
    pub(crate) fn walk(
        &mut self,
        instruction: u64,
        registers: (u64, u64, u64),
        read: &mut dyn FnMut(u64) -> Result<u64, ()>,
        each: &mut dyn FnMut(u64) -> bool,
    ) {
        let (link, stack, frame) = registers;
        #[cfg(target_arch = "x86_64")]
        let registers = {
            let _ = link;
            UnwindRegsNative::new(instruction, stack, frame)
        };
        #[cfg(target_arch = "aarch64")]
        let registers = UnwindRegsNative::new(link, stack, frame);
        let mut read = |address| read(address);
        let mut frames =
            self.unwinder.iter_frames(instruction, registers, &mut self.cache, &mut read);
        // A stack that cannot be followed further is shown as far as it could.
        while let Ok(Some(frame)) = frames.next() {
            if !each(frame.address_for_lookup()) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_found_in_the_program() {
        let objects = Objects::of_this_process().unwrap();
        let here = this_test_is_found_in_the_program as *const () as u64 + 1;
        let names = objects.names(&[here]);
        let name = &names[0].as_ref().unwrap().shown;
        assert!(name.ends_with("this_test_is_found_in_the_program"), "{name}");
        let loaded = &objects.list()[objects.position(here).unwrap()];
        assert!(loaded.code.contains(&here), "{loaded:x?}");
        assert_eq!(objects.position(1), None);
    }

    #[test]
    fn lines_of_maps_are_read_with_spaces_in_names_and_without_names() {
        let line = "55d0-55e0 r-xp 00001000 fe:01 42                         /a b/c";
        let found = mapped(line).unwrap();
        assert_eq!((found.range, found.is_code, found.offset), (0x55d0..0x55e0, true, 0x1000));
        assert_eq!(found.path, "/a b/c");
        assert!(mapped("7ffd-7ffe r-xp 00000000 00:00 0    [vdso]").is_none());
        assert!(mapped("7ffd-7ffe rw-p 00000000 00:00 0").is_none());
    }
}
