// Writes scripts for the scripted model; their format is told in crates/model/src/scripted.rs.

/// A turn: when it is played, and what it says and calls.
export function turn({ when, thinking, text, calls = [], delay_ms }) {
  const lines = ["[[turn]]"];
  if (when) lines.push(`when = { ${Object.entries(when).map(([name, value]) => `${name} = ${string(value)}`).join(", ")} }`);
  if (thinking) lines.push(`thinking = ${string(thinking)}`);
  if (text) lines.push(`text = ${string(text)}`);
  if (delay_ms) lines.push(`delay_ms = ${delay_ms}`);
  if (calls.length) lines.push(`calls = [${calls.map(call).join(", ")}]`);
  return `${lines.join("\n")}\n`;
}

/// A call of a tool.
const call = ([name, args]) => `{ name = ${string(name)}, arguments = ${string(JSON.stringify(args))} }`;

/// A shell command.
export const shell = (command) => ["execute", { command }];

// A string of JSON is one of TOML as well, but for the one control that JSON leaves alone.
const string = (value) => JSON.stringify(value).replaceAll("\u007f", "\\u007f");
