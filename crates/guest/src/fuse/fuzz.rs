//! Any bytes in the place of the kernel's.

use proptest::prelude::*;

use super::header::{MalformedRequest, parse};

/// A request of this kind with these bytes after its header.
fn request(opcode: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(40 + body.len()).unwrap();
    let mut bytes = [length.to_ne_bytes(), opcode.to_ne_bytes()].concat();
    bytes.extend([0; 32]);
    bytes.extend(body);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_that_are_no_request_are_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn any_body_of_any_kind_is_read_or_refused(
        opcode in 0_u32..60,
        body in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = parse(&request(opcode, &body));
    }

    #[test]
    fn what_is_cut_short_is_refused(opcode in 0_u32..60, cut in 0_usize..40) {
        let whole = request(opcode, b"");
        prop_assert_eq!(parse(&whole[..cut]).unwrap_err(), MalformedRequest);
    }
}
