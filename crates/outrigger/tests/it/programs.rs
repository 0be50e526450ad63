//! Servers of tools that are programs: each in a sandbox of its own, from call to call.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::installed;
use crate::support::{Turn, World, until};
use crate::tmux::Tmux;
use crate::toolserver;

/// What a model is told before what a program says that is not the one of the call before.
const ANEW: &str = "[The program of this server was begun anew for this call: what the one before held in memory is gone.]\n";

/// It counts the calls that it began in a file of its sandbox, and hangs at the first if it
/// is told to.
const CALL: &str = r#"
with open("/home/agent/calls", "a") as log:
    log.write(name + "\n")
calls = open("/home/agent/calls").read().split()
if name != "where" and "hang" in str(params) and len(calls) == 1:
    time.sleep(3600)
text = " ".join(calls)
if name == "where":
    def named(pid):
        try:
            return open("/proc/" + pid + "/comm").read()
        except OSError:
            return ""
    running = [pid for pid in os.listdir("/proc") if pid.isdigit() and named(pid) == "python3\n"]
    text = " ".join(sorted(os.environ)) + " %s %d %d" % (
        os.listdir("/workspace"), len(os.listdir("/tmp")), len(running))
"#;

fn server() -> String {
    toolserver::python(&["look", "note", "where"], CALL)
}

struct Home {
    world: World,
    script: String,
}

impl Home {
    fn new(command: &[&str], more: &str, turns: &[Turn<'_>]) -> Self {
        let world = World::new();
        let config = format!(
            "[[sandbox]]\nname = \"work\"\n[[sandbox]]\nname = \"aside\"\n{more}\n\
             [tools.ours]\ncommand = {command:?}\nsandbox = \"aside\"\nread_only = [\"look\", \"where\", \"echo\"]\n"
        );
        world.dir("config", &[("outrigger/config.toml", config.as_bytes())]);
        world.dir("repo", &[("file", b"one\n")]);
        let script = world.script(turns);
        Self { world, script }
    }

    fn args(&self) -> Vec<String> {
        let dir = self.world.path("repo").display().to_string();
        ["run", "Do it.", "--dir", &dir, "--script", &self.script].map(str::to_owned).into()
    }

    fn run(&self, code: i32) {
        let args = self.args();
        self.world.ran(code, &args.iter().map(String::as_str).collect::<Vec<_>>());
    }

    fn outputs(&self) -> Vec<Value> {
        let events = self.world.events(&self.world.session());
        let all = events.iter().map(|event| event["settled"]["outcome"].clone());
        all.filter(|it| it["done"]["output"].is_object() || it["unknown"].is_object()).collect()
    }
}

fn call(tool: &'static str, text: &str) -> (&'static str, Value) {
    (tool, json!({ "text": text }))
}

#[test]
fn a_program_is_called_in_its_own_sandbox_and_stays() {
    let turns = [
        Turn(&[call("mcp__ours__where", "")]),
        Turn(&[call("mcp__ours__look", "a")]),
        Turn(&[call("execute_aside", "a")]),
        Turn(&[call("mcp__ours__where", "")]),
    ];
    let home = Home::new(&["python3", "-c", &server()], "", &turns);
    home.run(0);
    let outputs = home.outputs();
    let text = |index: usize| outputs[index]["done"]["output"]["text"].as_str().unwrap();
    // Neither a key, nor the work.
    assert_eq!(text(0), "HOME LANG PATH PWD TMPDIR USER WORKSPACE [] 1 1", "{outputs:?}");
    // The same sandbox.
    assert_eq!(text(1), "where look");
    assert_eq!(outputs[1]["done"]["output"]["labels"], json!(["from:mcp:ours", "untrusted"]));
    // No tool of ours acts where it runs.
    assert_eq!(outputs.len(), 3, "{outputs:?}");
    // There is one process, and one place for its pipes.
    assert_eq!(text(2), text(0));
}

#[test]
fn a_program_that_fails_says_how() {
    let fails = "echo first >&2; printf 'no \\033[2Jserver\\n' >&2; exit 7";
    let home = Home::new(&["sh", "-c", fails], "", &[Turn(&[call("mcp__ours__look", "a")])]);
    let args = home.args();
    let told = home.world.ran(0, &args.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(told.stderr.contains("no tools of `ours`"), "{}", told.stderr);
    let how = "its program ended with exit code 7; it says: no server";
    assert!(told.stderr.contains(how), "{}", told.stderr);
    let listed = home.world.ran(0, &["tools", "ls"]).stdout;
    assert!(listed.contains(how), "{listed}");
    // A model is told nothing that the program said.
    let events = format!("{:?}", home.world.events(&home.world.session()));
    assert!(!events.contains("no server"), "{events}");
}

/// The engine is killed while the program works. What acts is not begun again; what only
/// reads is, by another program.
#[test]
fn a_crash_in_a_call_of_a_program_repeats_only_what_reads() {
    for (tool, repeated) in [("mcp__ours__look", true), ("mcp__ours__note", false)] {
        let turns = [
            Turn(&[(tool, json!({ "text": "hang" }))]),
            Turn(&[call("mcp__ours__look", "last")]),
            Turn(&[call("mcp__ours__where", "")]),
        ];
        let home = Home::new(&["python3", "-c", &server()], "", &turns);
        let mut running = if repeated {
            let args = home.args();
            home.world.start(&args.iter().map(String::as_str).collect::<Vec<_>>())
        } else {
            home.run(10);
            let inbox = home.world.ran(0, &["inbox", "--json"]).json();
            home.world.start(&["approve", inbox["waiting"][0]["id"].as_str().unwrap()])
        };
        let calls = |session: &str| {
            let sandbox = format!("{session}.aside");
            let args = ["sandbox", "exec", &sandbox, "--", "cat", "/home/agent/calls"];
            home.world.run(&args).stdout.lines().count()
        };
        let session = home.world.await_command();
        until("the program works", || (calls(&session) == 1).then_some(()));
        running.signal(Signal::KILL);
        until("it is dead", || running.has_ended().then_some(()));
        home.world.ran(0, &["sessions", "resume", &session]);
        let outputs = home.outputs();
        let text = |index: usize| outputs[index]["done"]["output"]["text"].as_str();
        if repeated {
            let anew = format!("{ANEW}look look");
            assert_eq!((text(0), text(1)), (Some(&*anew), Some("look look look")));
        } else {
            assert!(outputs[0]["unknown"].is_object(), "{outputs:?}");
            assert_eq!(text(1), Some(&*format!("{ANEW}note look")));
            // The one that was cut off has ended.
            assert_eq!(text(2), Some("HOME LANG PATH PWD TMPDIR USER WORKSPACE [] 1 1"));
        }
    }
}

#[test]
fn a_program_of_others_is_called() {
    let program = installed::program();
    let modules = program.ancestors().find(|it| it.ends_with("node_modules")).unwrap();
    let more = format!("read_only = [{:?}]", modules.display().to_string());
    let program = program.display().to_string();
    let turns = [Turn(&[("mcp__ours__echo", json!({ "message": "café" }))])];
    let home = Home::new(&["node", &program, "stdio"], &more, &turns);
    home.run(0);
    let outputs = home.outputs();
    assert_eq!(outputs[0]["done"]["output"]["text"], "Echo: café", "{outputs:?}");
}

/// Counts its calls in memory; ends after the answer, or hangs, if it is told to.
const HOLDS: &str = r#"
held = globals().get("held", 0) + 1
if "hang" in str(params):
    time.sleep(3600)
text = "held %d" % held
if "leave" in str(params):
    result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
    os._exit(0)
"#;

#[test]
fn what_a_program_holds_in_memory_stays_until_it_ends_or_is_given_up() {
    let turns = ["a", "leave", "c", "hang", "e", "f"];
    let calls: Vec<_> = turns.iter().map(|text| [call("mcp__ours__look", text)]).collect();
    let turns: Vec<_> = calls.iter().map(|calls| Turn(calls)).collect();
    let server = toolserver::python(&["look"], HOLDS);
    let home = Home::new(&["python3", "-c", &server], "freeze_after_ms = 1\n", &turns);
    let config = home.world.path("config/outrigger/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace("\"look\", \"where\", \"echo\"", "\"look\"");
    std::fs::write(&config, format!("{text}timeout_seconds_max = 3\n")).unwrap();
    home.run(0);
    let outputs = home.outputs();
    let texts: Vec<_> =
        outputs.iter().map(|it| it["done"]["output"]["text"].as_str().unwrap_or("?")).collect();
    let anew = format!("{ANEW}held 1");
    let late = "No answer: no answer within 3000 ms. It only reads, so it can be called again.";
    assert_eq!(texts, ["held 1", "held 2", &anew, late, &anew, "held 2"]);
}

/// Between the turns of a conversation its sandbox is frozen, or goes cold: then what it held is
/// gone, and the model is told so.
#[test]
fn a_program_rests_with_its_sandbox() {
    let look = "calls = [{ name = \"mcp__ours__look\", arguments = {} }]\n";
    let turns = format!(
        "[[turn]]\n{look}\
         [[turn]]\nwhen = {{ message_contains = \"again\", result_contains = \"held\" }}\n\
         text = \"Second.\"\n\
         [[turn]]\nwhen = {{ message_contains = \"again\" }}\n{look}\
         [[turn]]\nwhen = {{ result_contains = \"held\" }}\ntext = \"First.\"\n"
    );
    for (suspend, second) in [("frozen", "held 2".to_owned()), ("cold", format!("{ANEW}held 1"))] {
        let server = toolserver::python(&["look"], HOLDS);
        let more = format!("suspend = \"{suspend}\"\nsnapshots = \"off\"\n");
        let home = Home::new(&["python3", "-c", &server], &more, &[]);
        std::fs::write(home.world.path("turns.toml"), &turns).unwrap();
        let tmux = Tmux::new(&home.world, (160, 60), "$O --script ../turns.toml");
        tmux.until("/help");
        tmux.types("Look.");
        tmux.keys(&["Enter"]);
        tmux.until("First.");
        let session = home.world.session();
        let sandbox = format!("{session}.aside");
        until("its sandbox rests", || {
            let listed = home.world.ran(0, &["sandbox", "ls", "-a", "--json"]).stdout;
            (listed.contains(&sandbox) && listed.contains(suspend)).then_some(())
        });
        tmux.types("Look again.");
        tmux.keys(&["Enter"]);
        tmux.until("Second.");
        tmux.keys(&["C-d"]);
        assert_eq!(tmux.ended(), 0);
        let outputs = home.outputs();
        let text = |index: usize| outputs[index]["done"]["output"]["text"].as_str().unwrap();
        assert_eq!((text(0), text(1)), ("held 1", &*second), "{suspend}");
    }
}
