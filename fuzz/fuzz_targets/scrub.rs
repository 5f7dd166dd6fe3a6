#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ascertain_testkit::fuzz::scrub(bytes));
