//! Tests of the store through its public face.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

#[macro_use]
mod support;

mod accounts;
mod audit;
mod child;
mod conforms;
mod copy;
mod crash;
mod damage;
mod entries;
mod full;
mod golden;
mod leases;
mod proofs;
mod sample;
mod space;
mod transfer;
