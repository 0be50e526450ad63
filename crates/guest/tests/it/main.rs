//! The guest program, run for real: as process 1 of namespaces of its own, over a
//! root of its own, spoken to as its spawner and its hosts do.

#![cfg(test)]
#![expect(
    unsafe_code,
    reason = "the program is given descriptors by number, between fork and exec"
)]

mod control;
mod domain;
mod freeze;
mod harness;
mod hostile;
mod listen;
mod speed;
mod terminal;
