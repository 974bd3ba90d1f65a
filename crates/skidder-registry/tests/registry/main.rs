//! The registry through its public interface, on simulated machines that fail and on the real one.

#[cfg(test)]
mod behaviour;
#[cfg(test)]
mod common;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod inspect;
#[cfg(test)]
mod power_cut;
#[cfg(test)]
mod scale;
