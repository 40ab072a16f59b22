#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| kube_informer_fuzz::protobuf(input));
