//! The engine from outside, on the memory store: golden scripts per area, and threads that race.

mod damage;
mod races;
mod scripts;
mod support;
mod tables;
