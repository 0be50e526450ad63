// Who is known here: the organisation, its people and its groups. It is changed in a file.
import { html } from "./dom.js";
import { useFetched } from "./fetched.js";
import { Command, Failure } from "./parts.js";
import { line, plain } from "./text.js";
import { nameOf, withWhom } from "./who.js";

export function PeoplePage() {
  const { value, error } = useFetched("/v1/people");
  return html`
    <${Failure} error=${error} />
    ${!value && !error && html`<p class="loading">Looking who there is…</p>`}
    ${value && html`<${Directory} people=${value} />`}`;
}

function Directory({ people }) {
  const { organisation, you, data, groups } = people;
  return html`
    <p class="lead">You are <strong>${nameOf(you)}</strong>, of the organisation <strong>${line(organisation, 80)}</strong>.</p>
    <div class="people-columns">
      <section aria-labelledby="people-list"><h2 class="group" id="people-list">People <span class="faint">${data.length}</span></h2>
        <ul class="entries">${data.map((person) => html`<${Person} key=${person.name} person=${person} isYou=${person.name === you} />`)}</ul></section>
      <section aria-labelledby="group-list"><h2 class="group" id="group-list">Groups <span class="faint">${groups.length}</span></h2>
        ${groups.length === 0
          ? html`<p class="lead">There is no group yet.</p>`
          : html`<ul class="entries">${groups.map((group) => html`<${Group} key=${group.name} group=${group} />`)}</ul>`}</section>
    </div>
    <h2 class="group">How it is changed</h2>
    <p>People and groups are in the file that <code>policy.people</code> of the configuration names, and are changed there. This lets a person in:</p>
    <${Command} text="outrigger keys link --person NAME" />`;
}

function Person({ person, isYou }) {
  return html`<li class="entry-row" data-row tabindex="-1">
    <span class="entry-name">${nameOf(person.name)}${isYou && html` <span class="tag">you</span>`}</span>
    <span class="row-facts">${person.groups.length > 0 ? person.groups.map((group) => line(group, 60)).join(", ") : "in no group"}</span>
  </li>`;
}

function Group({ group }) {
  return html`<li class="entry-row" data-row tabindex="-1">
    <span class="entry-name">${line(group.name, 80)}</span>
    <span class="row-facts">${group.members.length > 0 ? group.members.map(withWhom).join(", ") : "nobody"}</span>
    ${group.role && html`<span class="snippet">${plain(group.role)}</span>`}
  </li>`;
}
