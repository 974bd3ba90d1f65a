//! YAML text to a tree of [`Node`]s with places.
//!
//! `saphyr-parser` finds the structure; what a scalar means, duplicate keys, anchors, merge keys and
//! all bounds are decided here. Dotted keys are left as they are: [`crate::tree`] splits them.

use crate::node::{Content, Entry, Map, Measure, Node};
use crate::problem::{Position, Problem, Problems, Source};
use crate::{quoted, scalar, yaml_message};
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Levels of nesting, aliases included. Deeper is an error; it also bounds every recursion here.
pub(crate) const DEPTH_MAX: usize = 64;

/// Nodes of one file after aliases are copied (64 bytes of text count as one). More is an error:
/// a few hundred bytes of aliases to aliases could otherwise fill the memory.
pub(crate) const WEIGHT_MAX: usize = 500_000;

/// Reads one YAML document. `None` if the structure is broken; mistakes that leave a tree (such as
/// a duplicate key) are added to `problems` and the tree is returned. An empty text is a null.
pub(crate) fn parse(source: &Arc<Source>, text: &str, problems: &Problems) -> Option<Node> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some((line, column, character)) = yaml_message::control_character(text) {
        let position = Position::new(source, line as u32, column as u32);
        let code = u32::from(character);
        let message = format!("invalid YAML: the control character U+{code:04X} is not allowed");
        problems.push(Problem::error(position, message).hint(
            "write it as an escape like `\\x1b` in double quotes, or save the file as UTF-8",
        ));
        return None;
    }
    let mut builder = Builder {
        source,
        problems,
        frames: Vec::new(),
        anchors: HashMap::new(),
        weight: 0,
        root: None,
    };
    let mut parser: Parser<'_, StrInput<'_>> = Parser::new_from_str(text);
    let mut documents = 0;
    while let Some(next) = parser.next_event() {
        let (event, span) = match next {
            Ok(found) => found,
            Err(error) => {
                if let Some(text) = quoted::indented(text, &error) {
                    return parse(source, &text, problems);
                }
                let (marker, message, hint) = yaml_message::explain(&error, text);
                let position = builder.position(marker);
                problems.push(Problem::error(position, message).hint(hint));
                return None;
            }
        };
        if let Event::DocumentStart(_) = event {
            documents += 1;
            if documents > 1 {
                let message = "a second YAML document begins here; it is ignored";
                problems.push_once(
                    Problem::warning(builder.position(span.start), message)
                        .hint("remove the `---` line, or give each file with its own `-c`"),
                );
                break;
            }
        }
        if let Err(problem) = builder.take(event, span) {
            problems.push(problem);
            return None;
        }
    }
    let empty = || Node::scalar(Position::new(source, 1, 1), Content::Null, "");
    Some(builder.root.unwrap_or_else(empty))
}

/// A list or map that is not complete yet.
struct Frame {
    position: Position,
    anchor: usize,
    open: Open,
}

enum Open {
    List(Vec<Node>),
    Map(OpenMap),
}

#[derive(Default)]
struct OpenMap {
    map: Map,
    /// The key whose value comes next.
    key: Option<Key>,
    /// Values of `<<`; added at the end, below the map's own keys.
    merges: Vec<Node>,
}

struct Key {
    name: String,
    position: Position,
    is_merge: bool,
}

struct Builder<'a> {
    source: &'a Arc<Source>,
    problems: &'a Problems,
    frames: Vec<Frame>,
    anchors: HashMap<usize, (Node, Measure)>,
    weight: usize,
    root: Option<Node>,
}

impl Builder<'_> {
    fn position(&self, marker: Marker) -> Position {
        Position::new(self.source, marker.line() as u32, marker.col() as u32 + 1)
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Problem> {
        let position = self.position(span.start);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_merge = style == ScalarStyle::Plain && tag.is_none() && text == "<<";
                let node = scalar_node(position, text, style, tag.as_deref())?;
                self.complete(node, anchor, is_merge)
            }
            Event::Alias(anchor) => {
                let Some((node, measure)) = self.anchors.get(&anchor) else {
                    return Err(Problem::error(position, "this alias refers to itself"));
                };
                if self.frames.len() + measure.depth > DEPTH_MAX {
                    return Err(too_deep(position));
                }
                // The copy is used here: problems with it are reported here.
                let mut copy = node.clone();
                self.add_weight(measure.weight, &position)?;
                copy.position = position;
                self.complete(copy, 0, false)
            }
            Event::SequenceStart(anchor, _) => self.open(position, anchor, Open::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                self.open(position, anchor, Open::Map(OpenMap::default()))
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
        }
    }

    fn open(&mut self, position: Position, anchor: usize, open: Open) -> Result<(), Problem> {
        if self.frames.len() >= DEPTH_MAX {
            return Err(too_deep(position));
        }
        self.frames.push(Frame { position, anchor, open });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Problem> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        let content = match frame.open {
            Open::List(list) => Content::List(list),
            Open::Map(open) => Content::Map(self.merged(open)?),
        };
        self.complete(Node::collection(frame.position, content), frame.anchor, false)
    }

    /// Puts a finished node where it belongs: into the open list, as key or value of the open map,
    /// or as the root.
    fn complete(&mut self, node: Node, anchor: usize, is_merge: bool) -> Result<(), Problem> {
        let own_weight = 1 + node.text.as_ref().map_or(0, |text| text.len() / 64);
        self.add_weight(own_weight, &node.position)?;
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), node.measure()));
        }
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        let open = match &mut frame.open {
            Open::List(list) => {
                list.push(node);
                return Ok(());
            }
            Open::Map(open) => open,
        };
        let Some(key) = open.key.take() else {
            let Some(name) = node.text else {
                let message = "a key must be a word, not a list or a map";
                return Err(Problem::error(node.position, message)
                    .hint("a value that begins with `[`, `{` or `*` must be in quotes"));
            };
            open.key = Some(Key { name, position: node.position, is_merge });
            return Ok(());
        };
        if key.is_merge {
            open.merges.push(node);
        } else if let Some(first) = open.map.get(&key.name) {
            let first = &first.key_position;
            let message = format!("`{}` is already set at {first}", key.name);
            self.problems.push(
                Problem::error(key.position, message)
                    .hint("remove one of the two; YAML does not add them up"),
            );
        } else {
            let Key { name, position, .. } = key;
            open.map.insert(Entry {
                key: name,
                key_position: position,
                value: node,
                indexed: false,
            });
        }
        Ok(())
    }

    /// The map with the keys of its `<<` values that it does not have itself; earlier ones win.
    fn merged(&mut self, open: OpenMap) -> Result<Map, Problem> {
        let mut map = open.map;
        let mut pending: Vec<Node> = open.merges;
        pending.reverse();
        while let Some(node) = pending.pop() {
            match node.content {
                Content::Map(other) => {
                    for entry in other.into_entries() {
                        if map.get(&entry.key).is_none() {
                            map.insert(entry);
                        }
                    }
                }
                Content::List(list) if list.iter().all(|item| item.as_map().is_some()) => {
                    pending.extend(list.into_iter().rev());
                }
                _ => {
                    let message =
                        "`<<` takes a map or a list of maps, usually an alias like `*name`";
                    return Err(Problem::error(node.position, message));
                }
            }
        }
        Ok(map)
    }

    fn add_weight(&mut self, weight: usize, position: &Position) -> Result<(), Problem> {
        self.weight += weight;
        if self.weight > WEIGHT_MAX {
            let message =
                format!("more than {WEIGHT_MAX} values; aliases (`*name`) count each time");
            return Err(Problem::error(position.clone(), message));
        }
        Ok(())
    }
}

fn too_deep(position: Position) -> Problem {
    Problem::error(position, format!("nested more than {DEPTH_MAX} levels deep"))
}

/// A scalar by its style and tag. Tags of the application (`!name`) change nothing.
fn scalar_node(
    position: Position,
    text: Cow<'_, str>,
    style: ScalarStyle,
    tag: Option<&Tag>,
) -> Result<Node, Problem> {
    let core = tag.filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str());
    let untagged =
        if style == ScalarStyle::Plain { scalar::resolve(&text) } else { Content::String };
    let content = match core {
        None | Some("timestamp") => untagged,
        Some("str") => Content::String,
        Some(name @ ("int" | "float" | "bool" | "null")) => {
            let content = scalar::resolve(&text);
            let fits = match name {
                "int" => matches!(content, Content::Int(_) | Content::UInt(_)),
                "bool" => matches!(content, Content::Bool(_)),
                "null" => matches!(content, Content::Null),
                _ => matches!(content, Content::Int(_) | Content::UInt(_) | Content::Float(_)),
            };
            if !fits {
                let message = format!("`{text}` is not what its tag `!!{name}` says");
                return Err(Problem::error(position, message));
            }
            content
        }
        Some(name) => {
            let message = format!("the tag `!!{name}` is not supported on a setting");
            return Err(Problem::error(position, message));
        }
    };
    Ok(Node::scalar(position, content, text))
}

#[cfg(test)]
#[path = "yaml_tests.rs"]
mod tests;
