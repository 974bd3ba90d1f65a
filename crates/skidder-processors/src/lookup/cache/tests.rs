//! What a store keeps, for how long, and the rest of it after the end of the program.

use super::*;
use skidder_event::{Map, Value};
use skidder_os::{Fs, Timestamp, read_to_end};
use skidder_testkit::{SimClock, SimFs};
use std::path::Path as FilePath;

const START: i64 = 1_795_294_377_123_000_000;

struct World {
    fs: SimFs,
    clock: SimClock,
}

impl World {
    fn new() -> Self {
        let clock = SimClock::starting_at(Timestamp(START));
        Self { fs: SimFs::new(&clock), clock }
    }

    /// As after a start of the program.
    fn context(&self) -> Context {
        let context = Context::new(Arc::new(self.fs.clone()), Arc::new(self.clock.clone()));
        context.with_data("/data")
    }

    fn file(&self) -> Option<String> {
        let file = self.fs.open(FilePath::new("/data/cache_processor/my_id")).ok()?;
        let bytes = read_to_end(&*file, 10_000).ok()?;
        String::from_utf8(bytes).ok()
    }
}

fn open(context: &Context, backend: &Backend, every: Duration, capacity: usize) -> Arc<Store> {
    let store = context.caches.open(backend, every, context).expect("a readable file");
    store.set_rules(Rules { ttl: Duration::from_mins(1), capacity });
    store
}

fn my_file() -> Backend {
    Backend::file("my/id".to_owned(), FilePath::new("/data"))
}

#[test]
fn a_file_has_what_was_put_when_the_last_user_is_gone() {
    let world = World::new();
    let context = world.context();
    let store = open(&context, &my_file(), Duration::ZERO, 0);
    let other = open(&context, &my_file(), Duration::ZERO, 0);
    let mut map = Map::new();
    map.insert("a", Value::List(vec![Value::Int(1), Value::Float(0.5), Value::Null]));
    store.put("one", Value::Map(map.clone()));
    other.put("two", Value::from("x"));
    drop(store);
    assert_eq!(world.file(), None);
    drop(other);
    let expected = "{\"key\":\"one\",\"val\":{\"a\":[1,0.5,null]},\"expires\":\"2026-11-21T20:53:57.123Z\"}\n\
        {\"key\":\"two\",\"val\":\"x\",\"expires\":\"2026-11-21T20:53:57.123Z\"}\n";
    assert_eq!(world.file().as_deref(), Some(expected));

    let context = world.context();
    let store = open(&context, &my_file(), Duration::ZERO, 0);
    assert_eq!(store.get("one", Value::clone), Some(Value::Map(map)));
    assert_eq!(store.get("two", Value::clone), Some(Value::from("x")));
    store.delete("one");
    store.delete("two");
    drop(store);
    assert_eq!(world.file(), None, "an empty cache has no file");
}

#[test]
fn what_has_expired_is_neither_given_nor_written_nor_read() {
    let world = World::new();
    let context = world.context();
    let store = open(&context, &my_file(), Duration::ZERO, 0);
    store.put("old", Value::Int(1));
    world.clock.advance(Duration::from_secs(40));
    store.put("new", Value::Int(2));
    world.clock.advance(Duration::from_secs(20));
    assert_eq!(store.get("old", Value::clone), Some(Value::Int(1)), "its last moment");
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(store.get("old", Value::clone), None);
    drop(store);
    assert_eq!(world.file().map(|text| text.lines().count()), Some(1));
    world.clock.advance(Duration::from_mins(1));
    let store = open(&world.context(), &my_file(), Duration::ZERO, 0);
    assert_eq!(store.get("new", Value::clone), None);
}

#[test]
fn a_file_is_written_in_between_if_asked() {
    let world = World::new();
    let context = world.context();
    let store = open(&context, &my_file(), Duration::from_secs(10), 0);
    store.put("one", Value::Int(1));
    assert_eq!(world.file(), None);
    world.clock.advance(Duration::from_secs(10));
    assert_eq!(store.get("one", Value::clone), Some(Value::Int(1)));
    assert!(world.file().is_some_and(|text| text.contains("\"one\"")));
}

#[test]
fn a_power_cut_leaves_a_whole_file() {
    let world = World::new();
    let context = world.context();
    let store = open(&context, &my_file(), Duration::from_millis(1), 0);
    for number in 0..20 {
        world.clock.advance(Duration::from_millis(1));
        store.put("number", Value::Int(number));
        world.fs.crash_torn(number as u64);
        let again = world.context();
        let read = open(&again, &my_file(), Duration::ZERO, 0);
        assert_eq!(
            read.get("number", Value::clone),
            Some(Value::Int(number)),
            "it was written and synced"
        );
    }
}

#[test]
fn the_first_to_expire_makes_room() {
    let world = World::new();
    let context = world.context();
    let store = open(&context, &Backend::Memory("m".to_owned()), Duration::ZERO, 2);
    for key in ["a", "b", "a", "c"] {
        world.clock.advance(Duration::from_secs(1));
        store.put(key, Value::from(key));
    }
    assert_eq!(store.get("b", Value::clone), None, "`a` was put again after it");
    assert_eq!(
        (store.get("a", Value::clone), store.get("c", Value::clone)),
        (Some("a".into()), Some("c".into()))
    );
    let other = open(&context, &Backend::Memory("other".to_owned()), Duration::ZERO, 2);
    assert_eq!(other.get("a", Value::clone), None);
}

#[test]
fn what_is_left_of_a_damaged_file_is_read() {
    let world = World::new();
    let good = "{\"key\":\"one\",\"val\":1,\"expires\":\"2026-11-21T22:53:57.5+01:00\"}\n";
    world.fs.create_dir_as_other("/data/cache_processor");
    let text = format!("{good}{{\"key\":\"two\",\"v");
    world.fs.write_as_other("/data/cache_processor/my_id", text.as_bytes());
    let store = open(&world.context(), &my_file(), Duration::ZERO, 0);
    assert_eq!(
        (store.get("one", Value::clone), store.get("two", Value::clone)),
        (Some(Value::Int(1)), None)
    );
}

#[test]
fn the_same_value_put_again_expires_later_and_another_takes_its_place() {
    let world = World::new();
    let context = world.context();
    let store = open(&context, &Backend::Memory("x".to_owned()), Duration::ZERO, 0);
    let is = |wanted: i64| move |known: &Value| *known == Value::Int(wanted);
    assert!(!store.put_again("a", is(1)));
    store.put("a", Value::Int(1));
    store.put("b", Value::Int(1));
    world.clock.advance(Duration::from_secs(40));
    assert!(store.put_again("a", is(1)));
    assert!(!store.put_again("a", is(2)), "it is another");
    world.clock.advance(Duration::from_secs(40));
    assert_eq!(store.get("a", Value::clone), Some(Value::Int(1)));
    assert_eq!(store.get("b", Value::clone), None);
    assert!(!store.put_again("b", is(1)), "it expired");
}
