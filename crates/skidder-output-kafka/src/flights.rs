//! Which records are where: every row of every delivery from the queue until its verdict.

use skidder_outputs::Refusal;
use skidder_pipeline::{Delivery, Ticket};

/// Rows of one [`Flight`] at most, so that a row's number fits in 16 bits.
const ROWS_MAX: u32 = 1 << 16;

/// One row on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) flight: u32,
    /// Counted from the first row of the flight.
    pub(crate) row: u16,
}

/// Some rows of one delivery.
#[derive(Debug)]
struct Flight {
    delivery: Delivery,
    /// Grows with each flight: which was taken first.
    order: u64,
    /// Rows without a verdict.
    pending: u32,
    /// Rows that were delivered and not reported yet.
    delivered: u32,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    list: Vec<Option<Flight>>,
    free: Vec<u32>,
    /// Those with something to report.
    touched: Vec<u32>,
    begun: u64,
}

impl Flights {
    /// Takes a delivery in; `each` is given number and rows of each flight that it becomes.
    pub(crate) fn add(&mut self, delivery: Delivery, each: &mut dyn FnMut(u32, u32)) {
        let mut rows = delivery.rows.clone();
        while !rows.is_empty() {
            let end = rows.end.min(rows.start.saturating_add(ROWS_MAX));
            let mut part = delivery.clone();
            part.rows = rows.start..end;
            rows.start = end;
            let pending = part.rows.len() as u32;
            let flight = Flight { delivery: part, order: self.begun, pending, delivered: 0 };
            self.begun += 1;
            let place = match self.free.pop() {
                Some(place) => {
                    self.list[place as usize] = Some(flight);
                    place
                }
                None => {
                    self.list.push(Some(flight));
                    (self.list.len() - 1) as u32
                }
            };
            each(place, pending);
        }
    }

    fn flight(&mut self, place: u32) -> &mut Flight {
        self.list[place as usize].as_mut().expect("it has rows without a verdict")
    }

    /// The delivery of a flight, and the row in its batch.
    pub(crate) fn origin(&self, item: Item) -> (&Delivery, u32) {
        let flight = self.list[item.flight as usize].as_ref();
        let delivery = &flight.expect("it has rows without a verdict").delivery;
        (delivery, delivery.rows.start + u32::from(item.row))
    }

    /// In which order items were taken from the queue.
    pub(crate) fn order(&self, item: Item) -> (u64, u16) {
        let flight = self.list[item.flight as usize].as_ref();
        (flight.map_or(u64::MAX, |flight| flight.order), item.row)
    }

    /// These rows were delivered; the verdict follows with [`settle`](Self::settle).
    pub(crate) fn delivered(&mut self, items: &[Item]) {
        for run in items.chunk_by(|a, b| a.flight == b.flight) {
            let place = run[0].flight;
            let flight = self.flight(place);
            let is_first = flight.delivered == 0;
            flight.delivered += run.len() as u32;
            if is_first {
                self.touched.push(place);
            }
        }
    }

    /// Gives delivered rows their verdict; returns how many there were.
    pub(crate) fn settle(&mut self) -> u64 {
        let mut touched = std::mem::take(&mut self.touched);
        let list = &self.list;
        let delivered = touched.iter().filter_map(|place| list[*place as usize].as_ref());
        Ticket::deliver_all(delivered.map(|flight| (&*flight.delivery.ticket, flight.delivered)));
        let mut count = 0;
        for place in touched.drain(..) {
            let flight = self.flight(place);
            let delivered = std::mem::take(&mut flight.delivered);
            flight.pending -= delivered;
            count += u64::from(delivered);
            self.free_if_done(place);
        }
        self.touched = touched;
        count
    }

    /// This row goes to the dead letters, which give the verdict.
    pub(crate) fn refuse(&mut self, item: Item, status: i16, reason: String) -> Refusal {
        let flight = self.flight(item.flight);
        flight.pending -= 1;
        let row = flight.delivery.rows.start + u32::from(item.row);
        let delivery = flight.delivery.clone();
        self.free_if_done(item.flight);
        let status = u16::try_from(status).unwrap_or(0);
        Refusal { delivery, row, status, reason: reason.into_bytes(), id: None }
    }

    fn free_if_done(&mut self, place: u32) {
        let slot = &mut self.list[place as usize];
        if slot.as_ref().is_some_and(|flight| flight.pending == 0) {
            *slot = None;
            self.free.push(place);
        }
    }

    /// Whether every row has its verdict.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.list.len()
    }
}
