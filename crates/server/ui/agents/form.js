// Says what an agent is: a new one, or another version of one that there is.
import { change } from "../api.js";
import { html, useState } from "../dom.js";
import { useAction, useFetched } from "../fetched.js";
import { Failure } from "../parts.js";
import { exact, line } from "../text.js";

const words = (text) => text.split(/[\s,]+/).filter(Boolean);
const LIMITS = [["dollars", "Dollars of a session", "any"], ["tokens", "Tokens of a session", "0"], ["steps", "Steps of a session", "0"]];

export function AgentForm({ info, onDone }) {
  const [said, setSaid] = useState(() => saidOf(info?.definition));
  const [name, setName] = useState("");
  const [owner, setOwner] = useState("user");
  const { busy, error, act } = useAction();
  const text = (key, example) => ({ value: said[key], placeholder: example, onInput: (event) => setSaid({ ...said, [key]: event.target.value }), autocomplete: "off" });
  const mono = (key, example) => ({ ...text(key, example), class: "mono", autocapitalize: "off", spellcheck: false });
  const byItself = said.cron.trim() || said.secret.trim();
  const save = (event) => {
    event.preventDefault();
    act(async () => {
      const [address, revision] = info ? [addressOf(info), info.revision] : [`/v1/agents/${encodeURIComponent(name.trim())}?owner=${encodeURIComponent(owner)}`, null];
      const done = await change("PUT", address, revision, definitionOf(said, info?.definition));
      const what = line(info?.name ?? name, 40);
      if (!info) setName(""), setSaid(saidOf());
      await onDone(done.proposal ? `${what} is proposed: somebody else has to accept it.` : `${what} is kept.`);
    });
  };
  return html`<form class="secret-form" onSubmit=${save} autocomplete="off">
    ${!info && html`<label class="field">Name<input type="text" class="mono" required maxlength="32" pattern="[a-z0-9][a-z0-9\\-]*" title="a-z 0-9 -" placeholder="reviewer" value=${name} autocapitalize="off" spellcheck=${false} onInput=${(event) => setName(event.target.value)} /></label>
      <${OwnerChoice} owner=${owner} onChange=${setOwner} />`}
    <label class="field">What it is for<input type="text" ...${text("description", "reads a change and says what is wrong with it")} /></label>
    <label class="field">Its task, where whoever starts it says nothing<textarea rows="2" required=${Boolean(byItself)} ...${text("task", "Review the newest commit.")}></textarea></label>
    <label class="field">What it is told beside it<textarea rows="4" ...${text("instructions", "You review changes. Do not change files.")}></textarea></label>
    <details class="more" open=${Boolean(byItself)}><summary>When it begins by itself</summary><div class="explain-more">
      <label class="field">At times: minute, hour, day, month, weekday<input type="text" ...${mono("cron", "30 7 * * MON-FRI")} /></label>
      <label class="field">Of the clock in<input type="text" ...${mono("zone", "UTC")} /></label>
      <label class="field">For messages signed with this secret<input type="text" ...${mono("secret", "ISSUES_HOOK")} /></label>
    </div></details>
    <details class="more"><summary>Model, network, image, tools, skills, limits</summary><div class="explain-more">
      <label class="field">Model<input type="text" ...${mono("model", "the server's own")} /></label>
      <label class="field">Its commands may reach<input type="text" ...${mono("network", "what is configured; for example packages docs.rs, or none")} /></label>
      <label class="field">It works in the image<input type="text" ...${mono("image", "what is configured; a template that is there")} /></label>
      <label class="field">Skills that it is told of<input type="text" ...${mono("skills", "all; for example release-notes")} /></label>
      <label class="field">Tools<input type="text" ...${mono("tools", "all; for example read_file ls grep")} /></label>
      ${LIMITS.map(([key, label, step]) => html`<label class="field">${label}<input type="number" min="0" step=${step === "any" ? "any" : "1"} ...${text(key, "as the server's")} /></label>`)}
    </div></details>
    <p class="tools"><button class="primary" type="submit" disabled=${busy || (!info && !name.trim())}>${busy ? "Keeping…" : info ? "Keep another version" : "Add it"}</button></p>
    <${Failure} error=${error} />
  </form>`;
}

function OwnerChoice({ owner, onChange }) {
  const { value } = useFetched("/v1/people");
  const groups = value?.data.find((person) => person.name === value.you)?.groups ?? [];
  return html`<label class="field">Whose it is<select value=${owner} onChange=${(event) => onChange(event.target.value)}>
    <option value="user">Yours</option>
    ${groups.map((group) => html`<option key=${group} value=${`group/${group}`}>The group ${exact(group)}'s</option>`)}
    <option value="organisation">Everybody's</option>
  </select></label>`;
}

// Where it is kept says whose it is: `/agents/group/ops/reviewer.toml`.
function addressOf(info) {
  const parts = info.path.split("/").slice(2, -1);
  return `/v1/agents/${encodeURIComponent(info.name)}?owner=${encodeURIComponent(parts.join("/"))}`;
}

const saidOf = (it = {}) => ({
  description: it.description ?? "",
  task: it.task ?? "",
  instructions: it.instructions ?? "",
  model: it.model ?? "",
  network: (it.network ?? []).join(" "),
  tools: (it.tools ?? []).join(" "),
  image: it.image ?? "",
  skills: (it.skills ?? []).join(" "),
  dollars: it.dollars ?? "",
  tokens: it.tokens ?? "",
  steps: it.steps ?? "",
  cron: it.schedule?.cron ?? "",
  zone: it.schedule?.time_zone ?? (it.schedule ? "" : Intl.DateTimeFormat().resolvedOptions().timeZone),
  secret: it.webhook?.secret ?? "",
});

// What is left empty is not said; what there is no field for stays as it was.
function definitionOf(said, before = {}) {
  const definition = {};
  for (const key of ["seconds", "cpu_seconds", "egress_bytes"]) if (before[key] !== undefined) definition[key] = before[key];
  for (const key of ["description", "task", "instructions", "model", "image"]) if (said[key].trim()) definition[key] = said[key].trim();
  for (const key of ["network", "tools", "skills"]) if (words(said[key]).length) definition[key] = words(said[key]);
  for (const key of ["dollars", "tokens", "steps"]) if (said[key] !== "") definition[key] = Number(said[key]);
  if (said.cron.trim()) definition.schedule = said.zone.trim() ? { cron: said.cron.trim(), time_zone: said.zone.trim() } : { cron: said.cron.trim() };
  if (said.secret.trim()) definition.webhook = { secret: said.secret.trim() };
  return definition;
}
