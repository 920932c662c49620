//! Fuzzes the decoders of Gemini's `generateContent`.
//! `run.sh` builds and runs it; `any_bytes.rs` says what has to hold.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "each target checks one wire")]
#[path = "../../tests/wires/any_bytes.rs"]
mod any_bytes;

fuzz_target!(|data: &[u8]| any_bytes::gemini(data));
