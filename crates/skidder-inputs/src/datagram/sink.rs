//! What makes events of datagrams.

use skidder_input::Intake;
use skidder_net::Datagram;
use std::any::Any;
use std::fmt::Debug;

/// What an input has learned from its datagrams, for the one that takes over its socket.
pub type Kept = Box<dyn Any + Send>;

/// Makes events of the datagrams of one socket, in the thread that receives them.
pub trait Sink: Send {
    /// Takes a datagram.
    fn add(&mut self, datagram: &Datagram<'_>);

    /// Offers the events of what was added, as received at `time` (nanoseconds since 1970-01-01 UTC). Returns how many events
    /// and bytes there were. Called after each call that received something.
    fn flush(&mut self, time: i64) -> (u64, u64);

    /// Called when nothing arrives: does what is due, and returns after how many nanoseconds it wants to be called again if
    /// nothing arrives until then.
    fn rest(&mut self) -> Option<i64> {
        None
    }

    /// Another input takes over the socket, if there is one: what it needs to know. Without one [`Sink::add`] may be called
    /// again.
    fn leave(&mut self) -> Option<Kept> {
        None
    }

    /// Nothing arrives any more.
    fn finish(&mut self) {}
}

/// Makes the sink of an input.
pub trait MakeSink: Debug + Send + Sync {
    /// `shown` is the address where datagrams arrive; `kept` is of the input before.
    fn make(&self, intake: Intake, shown: &str, kept: Option<Kept>) -> Box<dyn Sink>;
}
