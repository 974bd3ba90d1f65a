//! `decoding`: objects whose records are taken apart by a codec, whatever their type says
//! (`x-pack/libbeat/reader/decoder/config.go` of Filebeat).

use skidder_config::{Group, Key, Section, Size, settings};
use skidder_read::{CsvKeys, CsvRules, Layout, Table};
use skidder_table::avro::Avro;
use skidder_table::parquet::Parquet;
use std::path::Path;
use std::sync::Arc;

settings! {
    /// Settings of how the records of objects are taken apart.
    pub static DECODING = Group::new("input.objects.decoding", "How the records of objects are taken apart.")
        .include(&[&AVRO]);

    CSV_ENABLED: bool = Key::new("decoding.codec.csv.enabled")
        .default_words("`true` beside another setting of `csv`")
        .about(
            "each row of comma-separated values is an event, whose message is an object of JSON with texts; no `parsers` run \
             over it. *Differs*: `false` turns it off; Filebeat decodes all the same",
        );
    CSV_NAMES: Vec<String> = Key::<Vec<String>>::new("decoding.codec.csv.fields_names")
        .default_words("the first row")
        .about("the names of the values; each row must have as many values");
    CSV_COMMA: String = Key::new("decoding.codec.csv.comma")
        .default(",")
        .noun("a single character")
        .about("stands between two values");
    CSV_COMMENT: String = Key::new("decoding.codec.csv.comment")
        .default("")
        .noun("a single character")
        .about("lines that begin with it are passed over");
    CSV_LAZY_QUOTES: bool = Key::new("decoding.codec.csv.lazy_quotes").default(false).about(
        "a quote may stand in a value without quotes, and one that is not doubled in a value between quotes",
    );
    CSV_TRIM: bool = Key::new("decoding.codec.csv.trim_leading_space")
        .default(false)
        .about("white space before a value is left out, also when a quote follows");
    PARQUET_ENABLED: bool = Key::new("decoding.codec.parquet.enabled")
        .default_words("`true` beside another setting of `parquet`")
        .about(
            "each row of an object of Parquet is an event, whose message is an object of JSON; no `parsers` run over it. \
             *Differs*: `false` turns it off; Filebeat decodes all the same",
        );
    PARQUET_PARALLEL: bool = Key::new("decoding.codec.parquet.process_parallel")
        .default(false)
        .about("no effect, with a notice: objects are read side by side, the columns of one are not");
    PARQUET_BATCH: usize = Key::new("decoding.codec.parquet.batch_size")
        .default(1)
        .noun("a number of rows")
        .about("no effect, with a notice: 64 rows are decoded at once");
    PARQUET_BYTES: Size = Key::new("decoding.codec.parquet.max_size")
        .default(4 << 30)
        .range(1, 1 << 50)
        .ours()
        .about(
            "of an object, decompressed if it is a `.gz`: it is kept in a file in `path.data` while its rows are read; a \
             larger one is an error",
        );
}

settings! {
    /// Settings of the codec that is ours.
    static AVRO = Group::new("input.objects.decoding.avro", "Objects of Avro.");

    AVRO_ENABLED: bool = Key::new("decoding.codec.avro.enabled")
        .default_words("`true` beside another setting of `avro`")
        .ours()
        .about(
            "each row of an object container file of Avro is an event, whose message is an object of JSON; no `parsers` run \
             over it",
        );
    AVRO_BYTES: Size = Key::new("decoding.codec.avro.max_size")
        .default(4 << 30)
        .range(1, 1 << 50)
        .ours()
        .about("as `decoding.codec.parquet.max_size`");
}

/// What of the settings of an input shows that it has [`DECODING`].
pub const DECODING_NAME: &str = "decoding";

/// How the records of objects are taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoding {
    /// As rows of comma-separated values.
    Csv(CsvRules),
    /// As rows of a table.
    Table(Table),
}

impl Decoding {
    /// Reads the settings of [`DECODING`]; nothing if there is no codec. `keys` is the order in which the input writes the
    /// values of a row. Problems are reported.
    pub fn read(section: &Section<'_>, keys: CsvKeys) -> Option<Self> {
        let csv = read_csv(section, keys).map(Self::Csv);
        let tables = [read_parquet(section), read_avro(section)];
        let mut found = csv.into_iter().chain(tables.into_iter().flatten().map(Self::Table));
        let first = found.next();
        if found.next().is_some() {
            let message = "`decoding` has more than one codec";
            section.problem("decoding.codec", message, "leave one of them out");
        }
        first
    }

    /// Whether objects are tables.
    pub fn is_table(&self) -> bool {
        matches!(self, Self::Table(_))
    }

    /// Tables are kept in this folder while they are read.
    pub fn keep_in(&mut self, folder: &Path) {
        if let Self::Table(table) = self {
            table.folder = Some(folder.to_path_buf());
        }
    }

    /// What an object consists of that is taken apart so.
    pub fn layout(&self) -> Layout {
        match self {
            Self::Csv(rules) => Layout::Csv(Arc::new(rules.clone())),
            Self::Table(table) => Layout::Table(table.clone()),
        }
    }

    /// With another order of the values of a row.
    pub fn set_keys(&mut self, keys: CsvKeys) {
        if let Self::Csv(rules) = self {
            rules.keys = keys;
        }
    }
}

fn read_csv(section: &Section<'_>, keys: CsvKeys) -> Option<CsvRules> {
    let enabled = section.get(&CSV_ENABLED).optional();
    let letter = |key: &'static Key<String>| section.get(key).try_map(|text| delimiter(&text));
    let (comma, comment) = (letter(&CSV_COMMA), letter(&CSV_COMMENT));
    let rules = CsvRules {
        // Empty is as if it were not there.
        comma: comma.value().unwrap_or(','),
        comment: comment.value(),
        lazy_quotes: section.get(&CSV_LAZY_QUOTES).value(),
        trim_leading_space: section.get(&CSV_TRIM).value(),
        names: section.get(&CSV_NAMES).optional().unwrap_or_default(),
        keys,
    };
    if rules.comment == Some(rules.comma) {
        let message = "`comment` and `comma` are the same character";
        section.problem(CSV_COMMENT.name(), message, "lines that begin so would be both");
    }
    enabled.unwrap_or_else(|| section.has("decoding.codec.csv")).then_some(rules)
}

fn read_parquet(section: &Section<'_>) -> Option<Table> {
    let enabled = section.get(&PARQUET_ENABLED).optional();
    if section.get(&PARQUET_PARALLEL).value() {
        let message = "no effect: objects are read side by side, the columns of one are not";
        section.warning(PARQUET_PARALLEL.name(), message, "leave it out");
    }
    let batch = section.get(&PARQUET_BATCH);
    if batch.is_set() {
        let message = "no effect: 64 rows are decoded at once";
        section.warning(PARQUET_BATCH.name(), message, "leave it out");
    }
    batch.value();
    let bytes_max = section.get(&PARQUET_BYTES).value();
    let table = Table { format: Arc::new(Parquet), folder: None, bytes_max };
    enabled.unwrap_or_else(|| section.has("decoding.codec.parquet")).then_some(table)
}

fn read_avro(section: &Section<'_>) -> Option<Table> {
    let enabled = section.get(&AVRO_ENABLED).optional();
    let bytes_max = section.get(&AVRO_BYTES).value();
    let table = Table { format: Arc::new(Avro), folder: None, bytes_max };
    enabled.unwrap_or_else(|| section.has("decoding.codec.avro")).then_some(table)
}

/// The only character of a text; nothing if it is empty.
fn delimiter(text: &str) -> Result<Option<char>, String> {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (None, _) => Ok(None),
        (Some(letter), None) if CsvRules::is_delimiter(letter) => Ok(Some(letter)),
        _ => Err("expected a single character, and no quote or line break".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::{Problems, Settings};

    fn read(text: &str) -> (Option<Decoding>, String) {
        let problems = Problems::new();
        let yaml = Settings::parse("x", text).expect("YAML");
        let section = yaml.root(&problems);
        section.declared_by(&DECODING);
        let decoding = Decoding::read(&section, CsvKeys::InOrder);
        section.finish();
        (decoding, problems.to_string())
    }

    #[test]
    fn rows_have_the_defaults_of_filebeat() {
        let usual = CsvRules { keys: CsvKeys::InOrder, ..CsvRules::default() };
        let all = CsvRules {
            comma: '\t',
            comment: Some('#'),
            lazy_quotes: true,
            trim_leading_space: true,
            names: vec!["a".to_owned(), "b".to_owned()],
            keys: CsvKeys::InOrder,
        };
        let table = [
            ("{}", None),
            ("decoding.codec.csv.enabled: false", None),
            ("decoding.codec.csv: {enabled: false, comma: ';'}", None),
            ("decoding.codec.csv.enabled: true", Some(usual.clone())),
            ("decoding: {codec: {csv: {comma: '', comment: ''}}}", Some(usual)),
            (
                "decoding.codec.csv: {enabled: true, comma: \"\\t\", comment: '#', lazy_quotes: true, \
                 trim_leading_space: true, fields_names: [a, b]}",
                Some(all),
            ),
        ];
        for (text, expected) in table {
            let (decoding, problems) = read(text);
            assert_eq!(problems, "", "{text}");
            assert_eq!(decoding, expected.map(Decoding::Csv), "{text}");
        }
    }

    #[test]
    fn tables_have_a_bound() {
        let table = |bytes_max| {
            let format = Arc::new(Parquet);
            Some(Decoding::Table(Table { format, folder: None, bytes_max }))
        };
        for (text, expected) in [
            ("decoding.codec.parquet.enabled: true", table(4 << 30)),
            ("decoding.codec.parquet.max_size: 1MiB", table(1 << 20)),
            ("decoding.codec.parquet: {enabled: false, max_size: 1MiB}", None),
        ] {
            let (decoding, problems) = read(text);
            assert_eq!(problems, "", "{text}");
            assert_eq!(decoding, expected, "{text}");
        }
        let (decoding, problems) = read("decoding.codec.avro: {enabled: true, max_size: 1MiB}");
        let avro = Table { format: Arc::new(Avro), folder: None, bytes_max: 1 << 20 };
        assert_eq!((decoding, problems), (Some(Decoding::Table(avro)), String::new()));
        let (decoding, problems) = read(
            "decoding.codec.parquet: {enabled: true, process_parallel: true, batch_size: 100}",
        );
        assert!(decoding.is_some_and(|decoding| decoding.is_table()));
        assert!(problems.contains("the columns of one are not"), "{problems}");
        assert!(problems.contains("64 rows") && !problems.contains("error: "), "{problems}");
    }

    #[test]
    fn mistakes_name_the_key() {
        let table = [
            ("decoding.codec.csv.comma: ab", "`decoding.codec.csv.comma` is `ab`"),
            ("decoding.codec.csv.comma: '\"'", "no quote or line break"),
            ("decoding.codec.csv.comment: \"\\n\"", "decoding.codec.csv.comment"),
            ("decoding.codec.csv.comment: ','", "the same character"),
            ("decoding.codec.parquet.max_size: 0", "decoding.codec.parquet.max_size"),
            ("decoding.codec: {csv.enabled: true, parquet.enabled: true}", "more than one codec"),
            ("decoding.codec: {avro.enabled: true, parquet.enabled: true}", "more than one codec"),
            ("decoding.codec.csv.lazy_quote: true", "lazy_quotes"),
            ("decoding.codec.cvs.enabled: true", "did you mean `csv`?"),
        ];
        for (text, expected) in table {
            let (_, problems) = read(text);
            assert!(problems.contains("error: "), "{text}: {problems}");
            assert!(problems.contains(expected), "{text}: {problems}");
        }
    }
}
