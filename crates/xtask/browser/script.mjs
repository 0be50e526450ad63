// What the model does in all the sessions of the suite. It knows a session by what a person said
// in it last, so one script serves all of them.
import * as hostile from "./hostile.mjs";
import { shell, turn } from "./toml.mjs";

// The long session: so many replies with so many calls each, of which no two are the same in a row.
const LONG_REPLIES = 50;
const LONG_CALLS = 50;

export const TASK = {
  count: "Count slowly, and wait",
  steer: "And rhyme about it",
  sleep: "Sleep for a long time",
  edit: "Edit the notes",
  files: "Make a file of every kind",
  careful: "Change care.txt with care",
  once: "Ask me just one thing",
  hostile: `Do your worst ${hostile.MARKUP} \u202egnp.exe`,
  long: "Take many small steps",
  outlive: "Outlive the server",
  short: "Say something short",
  reach: "Reach what is outside",
};

// Granted to the session that reaches it; nobody has to be there.
export const REACHED = "http://127.0.0.2:9";

// What is printed before a page is there to listen is not shown before the end, so it goes on.
const TICKS = 'n=0; while [ ! -e /workspace/go ]; do n=$((n+1)); echo "tick $n"; sleep 0.1; done';

const EDIT = [
  "sed -i 's/^two$/TWO, and more/' notes.txt",
  "mkdir -p src && seq 1 40 | sed 's/^/line /' > src/added.rs",
  "rm old.txt",
].join(" && ");

// One that is no text, one that is too long to be shown whole, one that has nothing, and so on.
const FILES = [
  "mkdir -p empty deep/er",
  "seq 1 3 > deep/er/three.txt",
  "printf '\\000\\377\\001' > picture.bin",
  ": > blank.txt",
  "seq 1 200000 > long.txt",
  `printf '%s\\n' '<script>window.PWNED=1</script>' > ${hostile.quoted(hostile.FILE)}`,
].join(" && ");

const write = (file, content) => ["write_file", { file_path: `/workspace/${file}`, content }];

const TURNS = [
  in_(TASK.count, 1, {
    thinking: "Counting takes a while.\nSo there is time to look.",
    text: "I count, and you can watch.",
    calls: [shell(`${TICKS}; echo done`)],
  }),
  in_(TASK.steer, 2, { text: "So many ticks in a row,\nand **off we go**." }),
  in_(TASK.sleep, 1, { calls: [shell(TICKS)] }),
  in_(TASK.sleep, 2, { text: "I slept less than I meant to." }),
  in_(TASK.edit, 1, { text: "I edit three files.", calls: [shell(EDIT)] }),
  in_(TASK.edit, 2, { text: "Three files are otherwise now:\n\n- `notes.txt`\n- `src/added.rs`\n- `old.txt`, which is gone" }),
  in_(TASK.files, 1, { calls: [shell(FILES)] }),
  in_(TASK.files, 2, { text: "There is one of every kind." }),
  // There is a sandbox to look into before it is asked.
  in_(TASK.careful, 1, { calls: [shell("true")] }),
  in_(TASK.careful, 2, { calls: [write("care.txt", "one\nand two\n")] }),
  in_(TASK.careful, 3, { calls: [write("care.txt", "nothing is left\n")] }),
  in_(TASK.careful, 4, { text: "I asked twice." }),
  in_(TASK.once, 1, { text: "There is one thing that I have to ask.", calls: [shell("true")] }),
  in_(TASK.once, 2, { calls: [write("care.txt", "one, and asked once\n")] }),
  in_(TASK.once, 3, { text: "I asked once." }),
  in_("Do your worst", 1, { thinking: hostile.TEXT, text: hostile.TEXT, calls: [shell(hostile.COMMAND)] }),
  in_("Do your worst", 2, { text: hostile.FAKE_QUESTION }),
  ...Array.from({ length: LONG_REPLIES }, (_, at) =>
    in_(TASK.long, at + 1, { text: `Part ${at + 1}.`, calls: Array.from({ length: LONG_CALLS }, (_, n) => shell(`true ${n}`)) })),
  in_(TASK.long, LONG_REPLIES + 1, { text: "Those were many steps." }),
  in_(TASK.outlive, 1, { calls: [shell(`${TICKS}; echo after`)] }),
  in_(TASK.outlive, 2, { text: "Nothing was lost." }),
  in_(TASK.reach, 1, { calls: [shell(`curl -sS -m 5 ${REACHED}/; curl -sS https://refused.example/; true`)] }),
  in_(TASK.reach, 2, { text: "I reached what I may." }),
  turn({ when: { message_contains: "Say something" }, text: "Something short." }),
];

// The whole conversation has one first reply: `number` counts through it.
function in_(message, number, said) {
  return turn({ when: { message_contains: message, turn: number }, ...said });
}

export const SCRIPT = `context_tokens = 10000000\n${TURNS.join("\n")}`;
