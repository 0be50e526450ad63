//! A fake sandbox and short ways to call tools in it.

use outrigger_agent::{Status, ToolOutput};
use outrigger_sandbox::{Backend, ExecId, FileOp, Precondition, Sandbox, SandboxId, WriteMode};
use outrigger_sandbox_testing::fake::Fake;
use outrigger_tools::namespace::Namespace;
use outrigger_tools::{Invocation, ParsedCall, perform};
use serde_json::Value;
use std::sync::Arc;

pub(crate) struct World {
    pub(crate) fake: Fake,
    pub(crate) name: SandboxId,
    pub(crate) sandbox: Arc<dyn Sandbox>,
    calls: u64,
}

impl World {
    pub(crate) async fn new() -> Self {
        let fake = Fake::new();
        let name = SandboxId::new("work").expect("a valid name");
        let sandbox = fake.create(&name, &Fake::spec()).await.expect("the fake makes sandboxes");
        Self { fake, name, sandbox, calls: 0 }
    }

    pub(crate) fn namespace(&self) -> Namespace {
        Namespace::default().with_sandbox(Arc::clone(&self.sandbox))
    }

    fn next(&mut self) -> ExecId {
        self.calls += 1;
        ExecId::new(format!("call-{}", self.calls)).expect("a valid id")
    }

    pub(crate) async fn file(&mut self, path: &str, contents: impl AsRef<[u8]>) {
        let op = FileOp::Write {
            id: self.next(),
            path: path.to_owned(),
            contents: contents.as_ref().to_vec(),
            mode: WriteMode::Replace,
            executable: None,
            modified_ns: None,
            precondition: Precondition::None,
        };
        self.sandbox.files(op).await.expect("the fake writes files");
    }

    pub(crate) fn contents(&self, path: &str) -> Option<String> {
        let bytes = self.fake.peek(&self.name, path)?;
        Some(String::from_utf8(bytes).expect("the file is text"))
    }

    /// Calls a tool with arguments as raw text.
    pub(crate) async fn raw(&mut self, tool: &str, arguments: &str) -> ToolOutput {
        let parsed = ParsedCall::new(tool, arguments, None);
        let exec = self.next();
        let call = Invocation {
            parsed: &parsed,
            exec,
            seen: None,
            command_ms_max: None,
            env: std::collections::BTreeMap::new(),
        };
        let (output, _) =
            perform(&call, &self.namespace(), &()).await.expect("the sandbox is well");
        output
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> ToolOutput {
        self.raw(tool, &arguments.to_string()).await
    }

    /// What the model sees of a call, with its status before it.
    pub(crate) async fn shown(&mut self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments).await;
        format!("{}\n{}\n", status(output.status), output.text)
    }
}

pub(crate) fn status(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Error => "error",
        Status::Denied => "denied",
        Status::Unknown => "unknown",
    }
}
