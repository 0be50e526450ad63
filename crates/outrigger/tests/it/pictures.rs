//! Pictures that a person shows, from a file to what a provider is asked, and what is refused.

use crate::provider::Provider;
use crate::serve::Served;
use crate::serve_remote::laptop;
use crate::support::{Ran, World, until};
use crate::tmux::Tmux;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

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
    let text = world.ran(0, &["sessions", "show", &session]).stdout;
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

/// What a server knows of the pictures of its session, by the messages that have some.
fn known(served: &Served, key: &str, session: &str) -> Vec<Value> {
    let (_, events) = served.with_key(key, &[], &format!("/v1/sessions/{session}/events"));
    let all = events["data"].as_array().unwrap();
    all.iter().filter(|event| event["pictures"].is_array()).cloned().collect()
}

#[test]
fn a_server_is_sent_them_and_shows_them_again() {
    let laptop = laptop(&["true", "true"]);
    let (served, key) = (&laptop.served, laptop.served.key("ada"));
    let (png, gif) = (laptop.world.path("shot.png"), laptop.world.path("beside.gif"));
    fs::write(&png, PNG).unwrap();
    fs::write(&gif, b"GIF89a\x04\0\x05\0\x80\0\0").unwrap();
    let path = |path: &Path| path.display().to_string();
    let run = ["run", "--dir", laptop.dir(), "What is this?", "--picture", &path(&png)];
    laptop.world.ran(0, &run);
    let session = laptop.session();
    laptop.world.ran(0, &["sessions", "say", &session, "And this?", "--picture", &path(&gif)]);
    let said = known(served, &key, &session);
    let facts = |it: &Value| (it["name"].clone(), it["width"].clone(), it["bytes"].clone());
    let told: Vec<_> = said.iter().map(|event| facts(&event["pictures"][0])).collect();
    let wanted = [("shot.png", 2, PNG.len()), ("beside.gif", 4, 13)];
    assert_eq!(told, wanted.map(|(name, width, len)| (json!(name), json!(width), json!(len))));
    // Whoever sees the session sees them, and nobody else.
    let at = format!("/v1/sessions/{session}/events/{}/pictures", said[0]["seq"]);
    let shown = path(&laptop.world.path("shown"));
    let args = ["--output", &shown, "--dump-header", "-", "--oauth2-bearer", &key];
    let (status, headers) = served.curl(&args, &format!("{at}/0"));
    assert!(status == 200 && headers.contains("content-type: image/png"), "{headers}");
    assert_eq!(fs::read(&shown).unwrap(), PNG);
    assert_eq!(served.with_key(&key, &[], &format!("{at}/1")).0, 404);
    assert_eq!(served.with_key(&served.key("bob"), &[], &format!("{at}/0")).0, 404);
    // A server looks at them itself.
    let send = |content: &str, count: usize| {
        let picture = json!({ "name": "it", "content": content });
        let body = json!({ "text": "Look", "pictures": vec![picture; count] });
        let file = laptop.world.path("body");
        fs::write(&file, body.to_string()).unwrap();
        let (status, told) =
            served.with_key(&key, &["--json", &format!("@{}", file.display())], "/v1/sessions");
        (status, told["detail"].as_str().unwrap_or_default().to_owned())
    };
    let large = [PNG, &vec![0; 4 << 20]].concat();
    for (content, count, wanted) in [
        ("no base64", 1, "is no base64"),
        (&STANDARD.encode("no picture"), 1, "it is no picture"),
        (&STANDARD.encode(&PNG[..16]), 1, "cut short or damaged"),
        (&STANDARD.encode(&large), 1, "a picture may have 3932160"),
        (&STANDARD.encode(PNG), 11, "a message may have 10"),
    ] {
        let (status, detail) = send(content, count);
        assert!(status == 400 && detail.contains(wanted), "{status} {detail}");
    }
    assert_eq!(send(&STANDARD.encode(&large), 5).0, 413);
    assert_eq!(send(&STANDARD.encode(PNG), 10).0, 201);
}

#[test]
fn a_conversation_at_a_server_names_them() {
    let laptop = laptop(&["true", "true"]);
    fs::write(laptop.dir.join("shot.png"), PNG).unwrap();
    let tmux = Tmux::new(&laptop.world, (100, 50), &format!("cd {} && $O", laptop.dir()));
    tmux.until("y trust it as it is");
    tmux.keys(&["n", "Enter"]);
    tmux.until("/help");
    tmux.say("What is @shot.png?", "with shot.png, 2 × 3, 29 bytes");
    tmux.until("[scripted] Done.");
    tmux.say("And @shot.png now?", "[scripted] Done.");
    let key = laptop.served.key("ada");
    until("both are there", || {
        (known(&laptop.served, &key, &laptop.session()).len() == 2).then_some(())
    });
}
