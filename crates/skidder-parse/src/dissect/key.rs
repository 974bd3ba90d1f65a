//! The text of a tokenizer, read.

/// The type that a value is converted to (`|type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// 32 bits.
    Integer,
    /// 64 bits.
    Long,
    /// A floating-point number of 32 bits.
    Float,
    /// A floating-point number of 64 bits.
    Double,
    /// Text without spaces at its end.
    String,
    /// The words that Go's `strconv.ParseBool` takes.
    Boolean,
    /// Text that is an address.
    Ip,
}

impl Type {
    const NAMES: [(&'static str, Self); 7] = [
        ("integer", Self::Integer),
        ("long", Self::Long),
        ("float", Self::Float),
        ("double", Self::Double),
        ("string", Self::String),
        ("boolean", Self::Boolean),
        ("ip", Self::Ip),
    ];
}

/// Why a text is no tokenizer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenizerError {
    /// There is no `%{…}`.
    #[error("invalid dissect tokenizer: it has no key, as in `%{{name}}`")]
    NoKey,
    /// `|` and nothing behind it.
    #[error("missing data type in `%{{{0}}}`")]
    MissingType(String),
    /// `|` and a word that is no type.
    #[error(
        "invalid data type in `%{{{0}}}`; expected `integer`, `long`, `float`, `double`, `string`, `boolean` or `ip`"
    )]
    UnknownType(String),
    /// `+&`.
    #[error("mixed prefix `+&` in `%{{{0}}}`")]
    AppendIndirect(String),
    /// `&+`.
    #[error("mixed prefix `&+` in `%{{{0}}}`")]
    IndirectAppend(String),
    /// A prefix that needs a name has none.
    #[error("empty key in `%{{{0}}}`")]
    NoName(String),
    /// `->` and another key at once.
    #[error("`%{{{0}}}` has `->`, but no delimiter behind it that could be repeated")]
    NothingToRepeat(String),
    /// A line feed in a key.
    #[error("invalid field name `%{{{0}}}`: it has a line feed in it")]
    LineFeed(String),
    /// `&name` without a key of that name.
    #[error("missing reference for key '{0}': there is no `%{{?{0}}}` or `%{{*{0}}}`")]
    NoReference(String),
}

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prefix {
    None,
    /// Not kept.
    Skip,
    /// `?` and `*`: not kept, names others.
    Reference,
    /// `&`: kept under the name that a reference found.
    Indirect,
    /// `+`: appended.
    Append,
}

/// One `%{…}` and the delimiter behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Everything between the braces.
    pub(super) written: String,
    pub(super) prefix: Prefix,
    pub(super) name: Box<str>,
    pub(super) order: u8,
    pub(super) length: usize,
    pub(super) greedy: bool,
    pub(super) kind: Option<Type>,
    /// It has a type that means nothing, as the key is not kept as it stands.
    pub(super) idle_type: bool,
    /// Nothing = the tokenizer ends here.
    pub(super) delimiter: Option<String>,
}

/// What stands before the first key, and the keys.
pub(super) fn read(source: &str) -> Result<(&str, Vec<Key>), TokenizerError> {
    let mut keys: Vec<Key> = Vec::new();
    let mut begin = None;
    let mut rest = source;
    while let Some((before, behind)) = rest.split_once("%{")
        && let Some((inner, after)) = behind.split_once('}')
    {
        match keys.last_mut() {
            Some(last) => last.delimiter = Some(before.to_owned()),
            None => begin = Some(before),
        }
        keys.push(read_key(inner)?);
        rest = after;
    }
    if let Some(last) = keys.last_mut()
        && !rest.is_empty()
    {
        last.delimiter = Some(rest.to_owned());
    }
    match begin {
        Some(begin) => Ok((begin, keys)),
        None => Err(TokenizerError::NoKey),
    }
}

fn read_key(written: &str) -> Result<Key, TokenizerError> {
    if written.contains('\n') {
        return Err(TokenizerError::LineFeed(written.escape_debug().to_string()));
    }
    let mut rest = written;
    let mut kind = None;
    if let Some((before, word)) = rest.rsplit_once('|')
        && word.bytes().all(|byte| byte.is_ascii_alphabetic())
    {
        if word.is_empty() {
            return Err(TokenizerError::MissingType(written.to_owned()));
        }
        let known = Type::NAMES.iter().find(|(name, _)| *name == word);
        let unknown = || TokenizerError::UnknownType(written.to_owned());
        kind = Some(known.ok_or_else(unknown)?.1);
        rest = before;
    }
    let greedy = rest.ends_with("->");
    rest = rest.strip_suffix("->").unwrap_or(rest);
    let (before, length) = split_number(rest, '#');
    let (name, order) = split_number(before, '/');
    let error = |make: fn(String) -> TokenizerError| Err(make(written.to_owned()));
    let (prefix, name) = match name.as_bytes() {
        [] if kind.is_none() => (Prefix::Skip, ""),
        [b'+', b'&', ..] => return error(TokenizerError::AppendIndirect),
        [b'&', b'+', ..] => return error(TokenizerError::IndirectAppend),
        [b'?'] => (Prefix::Skip, ""),
        [b'?' | b'*', _, ..] => (Prefix::Reference, &name[1..]),
        [b'&', _, ..] => (Prefix::Indirect, &name[1..]),
        [b'+', _, ..] => (Prefix::Append, &name[1..]),
        [] | [b'*' | b'&' | b'+'] => return error(TokenizerError::NoName),
        _ => (Prefix::None, name),
    };
    // Only what is kept as it stands is converted: the parts of an appended field are put together first.
    let converts = matches!(prefix, Prefix::None | Prefix::Indirect);
    let idle_type = kind.is_some() && !converts;
    Ok(Key {
        written: written.to_owned(),
        prefix,
        name: name.into(),
        order,
        length: usize::from(length),
        greedy,
        kind: kind.filter(|_| converts),
        idle_type,
        delimiter: None,
    })
}

/// Takes one or two digits behind `mark` from the end; 0 if there are none.
fn split_number(text: &str, mark: char) -> (&str, u8) {
    match text.rsplit_once(mark) {
        Some((before, digits))
            if !before.is_empty()
                && (1..=2).contains(&digits.len())
                && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            (before, digits.parse().unwrap_or(0))
        }
        _ => (text, 0),
    }
}
