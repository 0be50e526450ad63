//! Pictures that a person shows, from a file to what a provider is asked, and what is refused.

use crate::provider::Provider;
use crate::support::{Ran, World, until};
use crate::tmux::Tmux;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs;

/// A PNG of two pixels by three.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x03\x08\x02\0\0\0";

/// A stream of Chat Completions that says this and ends.
fn answer(text: &str) -> String {
    let delta = json!({ "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": "stop" }] });
    format!("data: {delta}\n\ndata: [DONE]\n\n")
}

/// A world with a directory, a picture in it and one beside it.
fn world() -> World {
    let world = World::new();
    world.dir("repo", &[("shot.png", PNG), ("notes.md", b"# Notes"), ("false.png", b"no picture")]);
    fs::write(world.path("beside.gif"), b"GIF89a\x04\0\x05\0\x80\0\0").unwrap();
    world
}

/// The flags of a model there.
fn at<'a>(fake: &'a Provider, model: &'a str) -> [&'a str; 6] {
    ["--provider", "openai-chat", "--model", model, "--base-url", &fake.url]
}

fn run(world: &World, fake: &Provider, model: &str, more: &[&str]) -> Ran {
    let dir = world.path("repo").display().to_string();
    let args = [&["run", "What is this?", "--dir", &dir][..], &at(fake, model), more].concat();
    world.run(&args)
}

/// The last message that a provider was asked with.
fn asked(body: &str) -> Value {
    let body: Value = serde_json::from_str(body).unwrap();
    body["messages"].as_array().unwrap().last().unwrap()["content"].clone()
}

/// A picture and a text on the wire of chat.
fn shown(pictures: &[(&str, &[u8])], text: &str) -> Value {
    let url = |(kind, content): &(&str, &[u8])| {
        let url = format!("data:image/{kind};base64,{}", STANDARD.encode(content));
        json!({ "type": "image_url", "image_url": { "url": url } })
    };
    let text = [json!({ "type": "text", "text": text })];
    pictures.iter().map(url).chain(text).collect()
}

#[test]
fn pictures_go_along_and_are_told_in_a_line() {
    let (world, fake) = (world(), Provider::streaming(vec![answer("A boat."), answer("A ship.")]));
    let path = |name: &str| world.path(name).display().to_string();
    let (first, second) = (path("repo/shot.png"), path("beside.gif"));
    let more = ["--picture", &first, "--picture", &second, "--json=events"];
    let ran = run(&world, &fake, "m", &more).expect(0);
    let gif = fs::read(world.path("beside.gif")).unwrap();
    let heard = asked(&fake.heard()[0]);
    assert_eq!(heard, shown(&[("png", PNG), ("gif", &gif)], "What is this?"));
    // Programs and people are told what it was, and not what it shows.
    assert!(!ran.stdout.contains(&STANDARD.encode(PNG)), "{}", ran.stdout);
    let session = world.session();
    let events = world.events(&session);
    let said = events.iter().find(|event| event["said"]["pictures"].is_array()).unwrap();
    let picture = &said["said"]["pictures"][0];
    let digest = picture["digest"].as_str().unwrap();
    let facts = json!({
        "digest": digest, "media_type": "image/png", "bytes": PNG.len(), "width": 2, "height": 3,
        "name": "shot.png"
    });
    assert_eq!(*picture, facts);
    let text = world.ran(0, &["sessions", "show", &session]).stderr;
    assert!(text.contains("› What is this?\n  with shot.png, 2 × 3, 29 bytes\n"), "{text}");
    // It is kept as long as the session names it, and goes with it elsewhere.
    let (blob, file) = (world.harness().join("blobs").join(&digest[..2]).join(digest), path("it"));
    assert_eq!(fs::read(&blob).unwrap(), PNG);
    world.ran(0, &["sessions", "export", &session, &file]);
    let other = World::new();
    other.ran(0, &["sessions", "import", &file]);
    let there = other.harness().join("blobs").join(&digest[..2]).join(digest);
    assert_eq!(fs::read(there).unwrap(), PNG);
    // What was shown before is sent again as it was.
    let said = ["sessions", "say", &session, "And this?", "--picture", &second];
    world.ran(0, &said);
    let body: Value = serde_json::from_str(&fake.heard()[1]).unwrap();
    let users = body["messages"].as_array().unwrap().iter().filter(|it| it["role"] == "user");
    let users: Vec<_> = users.map(|message| message["content"].clone()).collect();
    assert_eq!(users, [heard, shown(&[("gif", &gif)], "And this?")]);
}

#[test]
fn what_is_no_picture_is_refused_before_anything_is_done() {
    let (world, fake) = (world(), Provider::streaming(vec![answer("Never.")]));
    let path = |name: &str| world.path(name).display().to_string();
    fs::write(world.path("large.png"), [PNG, &vec![0; 4 << 20]].concat()).unwrap();
    let small = path("repo/shot.png");
    let many: Vec<&str> = std::iter::repeat_n(["--picture", &small], 11).flatten().collect();
    let refused = |code: i32, model: &str, more: &[&str], told: &str| {
        let ran = run(&world, &fake, model, more).expect(code);
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    };
    refused(2, "m", &["--picture", &path("repo/false.png")], "false.png is no picture");
    refused(2, "m", &["--picture", &path("repo")], "repo` is a directory");
    refused(4, "m", &["--picture", &path("none.png")], "none.png");
    refused(2, "m", &["--picture", &path("large.png")], "a picture may have 3.7 MiB");
    refused(2, "m", &many, "the message has 11 pictures; a message may have 10");
    refused(2, "gpt-oss:20b", &["--picture", &small], "gpt-oss:20b does not see pictures");
    assert_eq!((fake.asked(), world.sessions().len()), (0, 0));
}

#[test]
fn a_model_that_sees_nothing_is_told_of_what_was_shown_to_another() {
    let (world, fake) = (world(), Provider::streaming(vec![answer("A boat."), answer("Well.")]));
    let picture = world.path("repo/shot.png").display().to_string();
    run(&world, &fake, "m", &["--picture", &picture]).expect(0);
    let session = world.session();
    let resume = ["sessions", "resume", &session, "--model", "gpt-oss:20b"];
    world.ran(0, &resume);
    let told = world.ran(2, &["sessions", "say", &session, "Look.", "--picture", &picture]);
    assert!(told.stderr.contains("gpt-oss:20b does not see pictures"), "{}", told.stderr);
    world.ran(0, &["sessions", "say", &session, "What was it?"]);
    let heard = fake.heard();
    assert_eq!(heard.len(), 2);
    let told = "[picture shot.png, 2 × 3: this model does not see pictures]\\n\\nWhat is this?";
    assert!(heard[1].contains(told), "{}", heard[1]);
}

#[test]
fn after_a_crash_the_same_bytes_are_sent() {
    let (world, fake) = (world(), Provider::hanging_first(answer("A boat.")));
    let (dir, picture) = (world.path("repo"), world.path("repo/shot.png"));
    let (dir, picture) = (dir.to_str().unwrap(), picture.to_str().unwrap());
    let task = ["run", "What is this?", "--dir", dir, "--picture", picture];
    let running = world.start(&[&task[..], &at(&fake, "m")].concat());
    until("the model is asked", || (fake.asked() == 1).then_some(()));
    running.kill();
    // What lies in the directory is not looked at again.
    fs::remove_file(picture).unwrap();
    let resumed = world.ran(0, &["sessions", "resume", &world.session()]);
    assert_eq!(resumed.stdout, "A boat.\n");
    let heard = fake.heard();
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[0], heard[1]);
    assert_eq!(asked(&heard[1]), shown(&[("png", PNG)], "What is this?"));
}

#[test]
fn a_conversation_shows_what_its_words_name() {
    let answers = ["A boat.", "A ship.", "None."].map(answer).to_vec();
    let (world, fake) = (world(), Provider::streaming(answers));
    let line = format!("$O {}", at(&fake, "m").join(" "));
    let tmux = Tmux::new(&world, (100, 40), &line);
    tmux.until("/help");
    tmux.types("what is @sho");
    tmux.until("@shot.png");
    tmux.keys(&["Tab"]);
    tmux.say("here?", "A boat.");
    let screen = tmux.shown();
    let lines = "› what is @shot.png here?\n  with shot.png, 2 × 3, 29 bytes\n";
    assert!(screen.contains(lines), "{screen}");
    assert_eq!(asked(&fake.heard()[0]), shown(&[("png", PNG)], "what is @shot.png here?"));
    // As a terminal types a file that is dropped on it.
    let path = world.path("beside.gif").display().to_string();
    tmux.paste(&format!("'{path}' "));
    tmux.say("and this?", "A ship.");
    let gif = fs::read(world.path("beside.gif")).unwrap();
    let text = format!("'{path}' and this?");
    assert_eq!(asked(&fake.heard()[1]), shown(&[("gif", &gif)], &text));
    // What is wrong is told, and what was written is there to be changed.
    tmux.say("and @false.png ", "false.png is no picture");
    tmux.until("› and @false.png\n  session");
    assert_eq!(fake.asked(), 2);
    tmux.keys(&["C-u"]);
    tmux.say("and @notes.md ", "None.");
    assert_eq!(asked(&fake.heard()[2]), json!("and @notes.md "));
    tmux.keys(&["C-d"]);
    assert_eq!(tmux.ended(), 0);
    // Gone on with, it says what was shown last.
    let said = ["sessions", "say", "@last", "And?", "--picture", &path];
    world.ran(0, &said);
    let tmux = Tmux::new(&world, (100, 40), "$O --continue");
    tmux.until("› And?");
    tmux.until("  with beside.gif, 4 × 5, 13 bytes");
}
