//! What the server says of itself.

use expect_test::expect_file;

/// The contract that is checked in is the one that is served. `UPDATE_EXPECT=1` writes it anew.
#[test]
fn the_contract_is_checked_in() {
    expect_file!["../../../../docs/openapi.json"].assert_eq(&outrigger_server::openapi());
}
