//! Objects that come in pieces of all sizes, and are gone on with in another run.

use super::*;
use crate::settings::{FilestreamSettings, InputKind};
use crate::testing::{Input, gzip, lines, messages_of, multiline, settings};
use skidder_decode::encoding::Encoding;
use skidder_parse::chain::{Chain, Parser};
use skidder_testkit::Random;
use std::fmt::Write as _;

/// The contexts of an input, and its cursors.
struct World {
    input: Input,
    whole: InputContext,
    scratch: Scratch,
    /// Bytes of the object that were asked for.
    asked: u64,
    layout: Layout,
}

impl World {
    fn new(change: impl Fn(&mut FilestreamSettings)) -> Self {
        let mut arriving = settings();
        arriving.kind = InputKind::Objects("aws-s3");
        change(&mut arriving);
        let limits = crate::readers::ReadersLimits { open_files: 10, decoders: 10 };
        let input = Input::with(arriving.clone(), limits, 100);
        let whole = InputContext {
            settings: FilestreamSettings { final_line: true, read_once: true, ..arriving },
            bind: Arc::clone(&input.context.bind),
            cursors: Arc::clone(&input.context.cursors),
            fs: Arc::clone(&input.context.fs),
            metrics: Arc::clone(&input.context.metrics),
            buffers: Arc::clone(&input.context.buffers),
            decoders: input.context.decoders.clone(),
            rows_max: input.context.rows_max,
        };
        Self { input, whole, scratch: Scratch::default(), asked: 0, layout: Layout::Lines }
    }

    /// Reads an object that comes in pieces; ends as a crash would after `batches` batches, of which the last `lost`
    /// have no verdict. Returns the messages, and whether all of it was read.
    fn read(
        &mut self,
        content: &[u8],
        random: &mut Random,
        (batches, lost): (usize, usize),
    ) -> (Vec<String>, bool) {
        let arriving = Arc::clone(&self.input.context);
        let context = ObjectContext { arriving: &arriving, whole: &self.whole };
        let name = ObjectName {
            id: SourceId(random.below(1 << 40)),
            key: "aws-s3::test::bucket/key@etag".into(),
            path: Arc::from(Path::new("https://bucket.example/key")),
            fields: Arc::new(Map::new()),
            layout: self.layout.clone(),
        };
        let mut object = Object::open(context, &name).unwrap();
        assert!(!object.is_finished());
        let start = object.starts_at(context).unwrap();
        let head = if start.head { &content[..content.len().min(HEAD_BYTES)] } else { &[] };
        object.begin(context, start, head);
        let (mut given, mut made, mut messages) = (start.from as usize, 0, Vec::new());
        let largest = [10, 1_000, 100_000][random.below(3) as usize];
        for _ in 0..1_000_000 {
            let is_whole = given == content.len();
            let (batch, step) = object.turn(context, is_whole, &mut self.scratch, Timestamp(0));
            if let Some(batch) = batch {
                made += 1;
                if made > batches {
                    return (messages, false);
                }
                messages.extend(messages_of(&batch));
                if made.saturating_add(lost) <= batches {
                    self.input.saved.settle(&batch);
                }
            }
            match step {
                Step::More => {}
                Step::Wants => {
                    assert!(!is_whole);
                    let count = 1 + random.below(largest) as usize;
                    let end = (given + count).min(content.len());
                    object.append(&content[given..end]);
                    self.asked += (end - given) as u64;
                    given = end;
                }
                Step::Done => {
                    let again = Object::open(context, &name).unwrap();
                    let is_settled = made.saturating_add(lost) <= batches;
                    assert_eq!(again.is_finished(), is_settled);
                    return (messages, true);
                }
                step => panic!("{step:?}"),
            }
        }
        panic!("it has no end");
    }
}

fn no_change(_: &mut FilestreamSettings) {}

fn in_groups(settings: &mut FilestreamSettings) {
    settings.parsers = Chain::new(vec![Parser::Multiline(multiline())], 10 << 20);
}

#[test]
fn an_object_gives_its_lines_in_whatever_pieces_it_comes() {
    let mut random = Random::new(1);
    let text = format!("{}last, without a line feed", lines("line", 0..5_000));
    let expected: Vec<&str> = text.lines().collect();
    for content in [text.clone().into_bytes(), gzip(text.as_bytes())] {
        for _ in 0..3 {
            let (messages, is_read) =
                World::new(no_change).read(&content, &mut random, (usize::MAX, 0));
            assert!(is_read && messages == expected, "{} of {}", messages.len(), expected.len());
        }
    }
    for content in ["", "\n", "a", "a\nb"] {
        let (messages, _) =
            World::new(no_change).read(content.as_bytes(), &mut random, (usize::MAX, 0));
        let expected: Vec<&str> = content.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(messages, expected, "{content:?}");
    }
}

#[test]
fn groups_and_encodings_are_read_as_in_files() {
    let mut random = Random::new(2);
    let mut text = String::new();
    for number in 0..2_000 {
        writeln!(text, "group {number}\n  with\n  more").unwrap();
    }
    let expected: Vec<String> =
        (0..2_000).map(|number| format!("group {number}\n  with\n  more")).collect();
    let content = gzip(text.as_bytes());
    let (messages, is_read) = World::new(in_groups).read(&content, &mut random, (usize::MAX, 0));
    assert!(is_read);
    assert_eq!(messages, expected);
    let wide = |text: &str| -> Vec<u8> {
        std::iter::once(0xfeff_u16).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    let encoded = |settings: &mut FilestreamSettings| {
        settings.encoding = Encoding::find("utf-16-bom").unwrap();
    };
    let text = lines("é", 0..3_000);
    let mut world = World::new(encoded);
    let content = wide(&text);
    let (first, _) = world.read(&content, &mut random, (5, 0));
    let (rest, is_read) = world.read(&content, &mut random, (usize::MAX, 0));
    let messages: Vec<String> = first.into_iter().chain(rest).collect();
    assert!(is_read);
    assert_eq!(messages, text.lines().collect::<Vec<_>>());
}

#[test]
fn what_was_settled_is_not_read_again_and_nothing_is_missing() {
    let mut random = Random::new(3);
    let text = lines("a line of an object, with its number", 0..60_000);
    let expected: Vec<&str> = text.lines().collect();
    for (content, change) in [
        (text.clone().into_bytes(), no_change as fn(&mut FilestreamSettings)),
        (gzip(text.as_bytes()), no_change),
        (gzip(text.as_bytes()), in_groups),
    ] {
        let mut world = World::new(change);
        let (mut all, mut again) = (Vec::<String>::new(), 0);
        loop {
            let batches = 1 + random.below(200) as usize;
            let lost = random.below(3).min(batches as u64) as usize;
            let (messages, is_read) = world.read(&content, &mut random, (batches, lost));
            // What has no verdict comes again.
            if let Some(first) = messages.first() {
                let at = expected.iter().position(|line| line == first).unwrap();
                assert!(at <= all.len(), "lines are missing");
                again += all.len() - at;
                all.truncate(at);
            }
            all.extend(messages);
            if is_read {
                break;
            }
        }
        assert_eq!(all, expected);
        assert!(again <= 2 * 100 * 2 * 600, "{again}");
    }
}

#[test]
fn a_compressed_object_goes_on_at_a_checkpoint_and_not_at_its_beginning() {
    let mut random = Random::new(4);
    // Lines that do not compress well, so that there are several checkpoints.
    let mut text = String::new();
    for number in 0..200_000 {
        writeln!(text, "{number} {:016x}{:016x}", random.number(), random.number()).unwrap();
    }
    let content = gzip(text.as_bytes());
    let mut world = World::new(no_change);
    let half = text.lines().count() / 100 / 2;
    let (first, is_read) = world.read(&content, &mut random, (half, 0));
    assert!(!is_read);
    world.asked = 0;
    let (rest, is_read) = world.read(&content, &mut random, (usize::MAX, 0));
    let messages: Vec<String> = first.into_iter().chain(rest).collect();
    assert!(is_read && messages == text.lines().collect::<Vec<_>>());
    let part = world.asked as f64 / content.len() as f64;
    assert!((0.4..0.75).contains(&part), "{part} of the object was asked for again");
}

#[test]
fn a_compressed_object_that_is_cut_off_is_damaged_and_not_done() {
    let mut world = World::new(no_change);
    let content = gzip(lines("line", 0..5_000).as_bytes());
    let arriving = Arc::clone(&world.input.context);
    let context = ObjectContext { arriving: &arriving, whole: &world.whole };
    let name = ObjectName {
        id: SourceId(1),
        key: "aws-s3::test::bucket/key@etag".into(),
        path: Arc::from(Path::new("https://bucket.example/key")),
        fields: Arc::new(Map::new()),
        layout: Layout::Lines,
    };
    let mut object = Object::open(context, &name).unwrap();
    let start = object.starts_at(context).unwrap();
    object.begin(context, start, &[]);
    object.append(&content[..content.len() / 2]);
    let mut count = 0;
    loop {
        let (batch, step) = object.turn(context, true, &mut world.scratch, Timestamp(0));
        if let Some(batch) = batch {
            count += batch.len();
            world.input.saved.settle(&batch);
        }
        match step {
            Step::More => {}
            Step::Damaged => break,
            step => panic!("{step:?}"),
        }
    }
    assert!((100..5_000).contains(&count), "{count}");
    assert!(!Object::open(context, &name).unwrap().is_finished());
}

#[test]
fn values_of_json_are_read_once_whatever_the_pieces_and_the_runs() {
    let mut random = Random::new(9);
    let values: Vec<String> = (0..3_000)
        .map(|number| format!("{{\n \"number\": {number}, \"text\": \"}}]\"}}"))
        .collect();
    let lists = format!("{{\"before\": {{}}, \"Records\": [{}]}}", values.join(" ,\n"));
    for (expand, text) in [("", values.join("\n")), ("", values.concat()), ("Records", lists)] {
        for content in [text.clone().into_bytes(), gzip(text.as_bytes())] {
            let layout = Layout::Json(skidder_parse::records::Expand::parse(expand));
            read_in_runs(&layout, &content, &values, &mut random);
        }
    }
}

/// Reads an object in one run, and in several ones that end as a crash would: its events are `values`, each of which comes
/// once but for those that had no verdict.
fn read_in_runs(layout: &Layout, content: &[u8], values: &[String], random: &mut Random) {
    let world = || World { layout: layout.clone(), ..World::new(no_change) };
    let (messages, is_read) = world().read(content, random, (usize::MAX, 0));
    assert!(is_read && messages == values, "{} of {}", messages.len(), values.len());
    let mut world = world();
    let mut all = Vec::<String>::new();
    loop {
        let batches = 1 + random.below(20) as usize;
        let lost = random.below(3).min(batches as u64) as usize;
        let (messages, is_read) = world.read(content, random, (batches, lost));
        // What has no verdict comes again.
        if let Some(first) = messages.first() {
            let at = values.iter().position(|value| value == first).unwrap();
            assert!(at <= all.len() && at + 2 * 100 >= all.len(), "{at} behind {}", all.len());
            all.truncate(at);
        }
        all.extend(messages);
        if is_read {
            break;
        }
    }
    assert!(all == values, "{} of {}", all.len(), values.len());
}

#[test]
fn rows_are_read_once_and_a_run_that_goes_on_knows_their_names() {
    let mut random = Random::new(11);
    let (mut text, mut values) = ("number,text\n".to_owned(), Vec::new());
    for number in 0..3_000 {
        writeln!(text, "{number},\"a\nb\"").unwrap();
        values.push(format!("{{\"number\":\"{number}\",\"text\":\"a\\nb\"}}"));
    }
    let layout = Layout::Csv(Arc::default());
    for content in [text.clone().into_bytes(), gzip(text.as_bytes())] {
        read_in_runs(&layout, &content, &values, &mut random);
        // With other settings than before.
        for other in [Layout::Json(skidder_parse::records::Expand::default()), Layout::Lines] {
            let mut world = World { layout: other, ..World::new(no_change) };
            let bytes = if world.layout == Layout::Lines { &content } else { &b"1 2 3 4"[..] };
            let (_, is_read) = world.read(&bytes.repeat(100), &mut random, (1, 0));
            assert!(!is_read);
            world.layout = layout.clone();
            let (messages, is_read) = world.read(&content, &mut random, (usize::MAX, 0));
            assert!(is_read && messages == values, "{} of {}", messages.len(), values.len());
        }
    }
}

/// A format for tests: each line is a row.
#[derive(Debug)]
struct LinesFormat;

struct LinesRows {
    texts: Vec<String>,
    next: u64,
}

impl skidder_parse::records::TableFormat for LinesFormat {
    fn name(&self) -> &'static str {
        "table of a test"
    }

    fn open(
        &self,
        stored: Arc<dyn skidder_parse::records::Stored>,
        from: u64,
        _: usize,
    ) -> Result<Box<dyn skidder_parse::records::TableRows>, skidder_parse::records::RecordError>
    {
        let mut bytes = vec![0; stored.size() as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += stored.read_at(&mut bytes[filled..], filled as u64).unwrap();
        }
        let text = String::from_utf8(bytes).unwrap();
        let texts = text.lines().map(str::to_owned).collect();
        Ok(Box::new(LinesRows { texts, next: from }))
    }
}

impl skidder_parse::records::TableRows for LinesRows {
    fn next(
        &mut self,
        found: &mut skidder_parse::records::Found,
        count_max: usize,
    ) -> Result<bool, skidder_parse::records::RecordError> {
        for _ in 0..count_max {
            let Some(text) = self.texts.get(self.next as usize) else { return Ok(false) };
            let (start, len) = (found.text.len() as u32, text.len() as u32);
            found.text.extend_from_slice(text.as_bytes());
            let (offset, end) = (self.next, self.next + 1);
            found.records.push(skidder_parse::records::Record { start, len, offset, end });
            self.next = end;
        }
        Ok(true)
    }
}

fn table_of(folder: &Path, bytes_max: u64) -> Layout {
    let format = Arc::new(LinesFormat);
    let folder = Some(folder.to_path_buf());
    Layout::Table(skidder_parse::records::Table { format, folder, bytes_max })
}

#[test]
fn rows_of_a_table_are_read_once_and_nothing_is_left_in_its_folder() {
    let mut random = Random::new(12);
    let folder = Path::new("/spool");
    let text = lines("a row", 0..3_000);
    let values: Vec<String> = text.lines().map(str::to_owned).collect();
    let layout = table_of(folder, 1 << 20);
    for content in [text.clone().into_bytes(), gzip(text.as_bytes())] {
        read_in_runs(&layout, &content, &values, &mut random);
        // With other settings than before.
        let mut world = World { layout: Layout::Lines, ..World::new(no_change) };
        world.read(&content, &mut random, (3, 0));
        world.layout = layout.clone();
        let (messages, is_read) = world.read(&content, &mut random, (usize::MAX, 0));
        assert!(is_read && messages == values, "{} of {}", messages.len(), values.len());
    }
    let mut world = World { layout, ..World::new(no_change) };
    let (messages, is_read) = world.read(b"", &mut random, (usize::MAX, 0));
    assert!(is_read && messages.is_empty());
    let layout = table_of(folder, 1 << 20);
    let mut world = World { layout, ..World::new(no_change) };
    let (messages, _) = world.read(text.as_bytes(), &mut random, (3, 3));
    assert!(!messages.is_empty());
    let fs = &world.input.context.fs;
    fs.read_dir(folder, &mut |entry| panic!("{:?} is left", entry.name)).unwrap();
}

#[test]
fn a_table_of_more_than_the_bound_is_damaged() {
    let folder = Path::new("/spool");
    let text = lines("a row", 0..3_000);
    for (bytes_max, expected) in [(text.len() as u64, false), (text.len() as u64 - 1, true)] {
        let mut world = World::new(no_change);
        let arriving = Arc::clone(&world.input.context);
        let context = ObjectContext { arriving: &arriving, whole: &world.whole };
        let name = ObjectName {
            id: SourceId(1),
            key: "aws-s3::test::bucket/key@etag".into(),
            path: Arc::from(Path::new("https://bucket.example/key")),
            fields: Arc::new(Map::new()),
            layout: table_of(folder, bytes_max),
        };
        let mut object = Object::open(context, &name).unwrap();
        let start = object.starts_at(context).unwrap();
        object.begin(context, start, &[]);
        object.append(text.as_bytes());
        let end = loop {
            let (_, step) = object.turn(context, true, &mut world.scratch, Timestamp(0));
            if !matches!(step, Step::More) {
                break step;
            }
        };
        assert_eq!(matches!(end, Step::Damaged), expected, "{end:?}");
        assert_eq!(object.damage().contains("more than"), expected, "{}", object.damage());
    }
}

#[test]
fn what_is_not_known_is_decided_by_the_beginning_and_stays_so() {
    let mut random = Random::new(10);
    let values: Vec<String> = (0..3_000).map(|number| format!("{{\n\"n\": {number}}}")).collect();
    let text = lines("a line", 0..3_000);
    let of_lines: Vec<&str> = text.lines().collect();
    for (content, expected) in
        [(values.join("\n"), values.iter().map(|text| &**text).collect()), (text.clone(), of_lines)]
    {
        for content in [content.clone().into_bytes(), gzip(content.as_bytes())] {
            let layout = Layout::JsonOrLines(skidder_parse::records::Expand::default());
            let mut world = World { layout, ..World::new(no_change) };
            let (mut messages, is_read) = world.read(&content, &mut random, (3, 0));
            assert!(!is_read && !messages.is_empty());
            let (rest, is_read) = world.read(&content, &mut random, (usize::MAX, 0));
            messages.extend(rest);
            assert!(is_read && messages == expected, "{} of {}", messages.len(), expected.len());
        }
    }
    // With other settings than before.
    let content = gzip(values.join("\n").as_bytes());
    let layout = Layout::Json(skidder_parse::records::Expand::default());
    let mut world = World { layout, ..World::new(no_change) };
    world.read(&content, &mut random, (3, 0));
    world.layout = Layout::Lines;
    let (messages, is_read) = world.read(&content, &mut random, (usize::MAX, 0));
    assert!(is_read && messages.len() == 2 * values.len(), "all lines: {}", messages.len());
}
