//! Tests of the real binary: processes are started, watched, killed and resumed.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod approvals;
mod audit;
mod bad_input;
mod branches;
mod budgets;
mod canary;
mod captured;
mod completions;
mod config;
mod confined;
mod conversation;
mod cuts;
#[expect(clippy::print_stdout, reason = "whoever runs them reads which daemon they used")]
#[expect(dead_code, reason = "these tests end no daemon")]
#[path = "../../../sandbox-docker/tests/it/daemon.rs"]
mod daemon;
mod demo;
mod detached;
mod docker;
mod docker_secrets;
mod faults;
mod gate_kill;
mod going_on;
mod hardened;
mod held_hosts;
mod hostile;
#[path = "../../../mcp/tests/it/installed.rs"]
mod installed;
mod keys;
#[expect(clippy::print_stdout, reason = "whoever runs them reads where the kills came")]
mod kill;
#[expect(dead_code, reason = "these tests use a part of it")]
#[path = "../../../mcp/tests/it/server.rs"]
mod mcp;
mod memory;
mod models;
mod network;
mod oidc_provider;
mod organisations;
mod otlp_collector;
mod outside;
mod patches;
mod pictures;
mod plain;
mod policy;
mod postgres;
mod programs;
mod projects;
mod provider;
mod race;
mod role_tools;
mod run;
mod sandboxes;
mod secrets;
mod serve;
mod serve_agents;
mod serve_asked;
mod serve_conversation;
mod serve_egress;
mod serve_memory;
mod serve_observed;
mod serve_oidc;
mod serve_people;
mod serve_remote;
mod serve_requests;
mod serve_sandbox_files;
mod serve_sandbox_network;
mod serve_sandbox_verbs;
mod serve_sandboxes;
mod serve_verbs;
mod sessions;
mod skills;
mod sockets;
mod space;
mod store_copy;
mod subagents;
mod support;
mod terminal;
mod tls_host;
mod tmux;
mod toolserver;
mod tricks;
mod trust;
mod two_servers;
mod words;
