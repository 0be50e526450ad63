// The account of a person who has none yet: nothing was spent there, and nothing said of it.
import { html, useState } from "../dom.js";
import { useFetched } from "../fetched.js";
import { Failure } from "../parts.js";
import * as who from "../who.js";
import { Controls } from "./account.js";

export function OtherAccount({ accounts, onDone }) {
  const [name, setName] = useState("");
  const { value, error } = useFetched("/v1/people");
  const account = `user:${name.trim()}`;
  const isListed = accounts.includes(account);
  const people = (value?.data ?? []).map((person) => who.nameOf(person.name));
  const done = (words) => {
    setName("");
    return onDone(words);
  };
  return html`<div class="other-account">
    <label class="field">Whose<input type="text" maxlength="200" list="account-people" value=${name} onInput=${(event) => setName(event.target.value)} autocomplete="off" autocapitalize="off" spellcheck=${false} /></label>
    <datalist id="account-people">${people.filter((person) => !accounts.includes(`user:${person}`)).map((person) => html`<option value=${person} />`)}</datalist>
    ${isListed && html`<p class="warning" role="note">This account is above.</p>`}
    ${value && name.trim() && !people.includes(name.trim()) && html`<p class="warning" role="note">Nobody of this name is known here.</p>`}
    <${Controls} key=${account} info=${{ account, measures: [] }} disabled=${!name.trim() || isListed} onDone=${done} />
    <${Failure} error=${error} />
  </div>`;
}
