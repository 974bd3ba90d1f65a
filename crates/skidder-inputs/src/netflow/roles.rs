//! The fields of a flow that say more than their own value.

use skidder_event::{Cell, Text};
use skidder_netflow::{Role, Value};
use std::net::IpAddr;

/// Their values.
pub(super) struct Roles([Found; Role::COUNT]);

/// The value of a field.
#[derive(Clone, Copy)]
enum Found {
    Nothing,
    Number(u64),
    /// A text in the batch.
    Text(Text),
    /// An address, and its text in the batch.
    Address(IpAddr, Text),
}

impl Default for Roles {
    fn default() -> Self {
        Self([Found::Nothing; Role::COUNT])
    }
}

impl Roles {
    /// Takes note of a value, which is in the batch as `cell`.
    pub(super) fn set(&mut self, role: Role, value: &Value<'_>, cell: Cell) {
        self.0[role as usize] = match (value, cell) {
            (Value::Unsigned(number), _) => Found::Number(*number),
            (Value::Address(address), Cell::Str(text)) => Found::Address(*address, text),
            (Value::Text(_) | Value::Mac(_) | Value::AclId(_), Cell::Str(text)) => {
                Found::Text(text)
            }
            _ => Found::Nothing,
        };
    }

    pub(super) fn number(&self, role: Role) -> Option<u64> {
        match self.0[role as usize] {
            Found::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The first of them that there is.
    pub(super) fn first(&self, roles: [Role; 3]) -> Option<u64> {
        roles.into_iter().find_map(|role| self.number(role))
    }

    pub(super) fn text(&self, role: Role) -> Option<Text> {
        match self.0[role as usize] {
            Found::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn address(&self, role: Role) -> Option<(IpAddr, Text)> {
        match self.0[role as usize] {
            Found::Address(address, text) => Some((address, text)),
            _ => None,
        }
    }
}
