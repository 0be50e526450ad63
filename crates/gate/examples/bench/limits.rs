//! Sizes of the measurement, and what keeps it from going on.

/// For all of it.
pub(crate) const BENCH_MS_MAX: u64 = 175_000;
/// Until a peer that was started accepts connections.
pub(crate) const START_MS_MAX: u64 = 20_000;
/// Between two looks whether it does.
pub(crate) const START_PAUSE_MS: u64 = 50;
/// For one visit to a route: it does not answer any more.
pub(crate) const VISIT_MS_MAX: u64 = 15_000;
/// Bytes of a head. No side sends more.
pub(crate) const HEAD_BYTES_MAX: usize = 16 << 10;
/// Bytes that are written and read at once of a large body.
pub(crate) const PIECE_BYTES: usize = 256 << 10;

/// Visits to each route for requests and for connections.
pub(crate) const ROUNDS: usize = 8;
/// Requests of a visit that are not counted.
pub(crate) const WARM_REQUESTS: usize = 50;
/// Requests of a visit, one after another on one connection.
pub(crate) const REQUESTS: usize = 500;
/// For them. Who is slow is asked less.
pub(crate) const REQUESTS_MS_MAX: u64 = 500;
/// Connections of a visit, one after another, each with one request.
pub(crate) const CONNECTIONS: usize = 40;
/// For them.
pub(crate) const CONNECTIONS_MS_MAX: u64 = 800;

/// Visits to each route for requests per second.
pub(crate) const CROWD_ROUNDS: usize = 5;
/// Connections that ask at once.
pub(crate) const CROWD_CONNECTIONS: usize = 32;
/// How long they ask.
pub(crate) const CROWD_MS: u64 = 1_000;

/// Visits to each route for a large body.
pub(crate) const BODY_ROUNDS: usize = 3;
/// Bytes of the body.
pub(crate) const BODY_BYTES: u64 = 1_000_000_000;
/// For it. What came until then says how fast it was.
pub(crate) const BODY_MS_MAX: u64 = 5_000;

/// Sandboxes whose connections are open while memory is measured.
pub(crate) const OPEN_SANDBOXES: usize = 5;
/// Connections of each. The gate allows 256.
pub(crate) const OPEN_CONNECTIONS_EACH: usize = 200;
/// Descriptors that the gate and we need for that.
pub(crate) const OPEN_FILES: u64 = 4_096;
