// Accounts, as one speaks of them, and where they are changed.
import { line } from "../text.js";

export const accountPath = (account) => `/v1/budgets/${encodeURIComponent(account)}`;

export function nameOf(account) {
  if (account === "org") return "The organisation";
  return account.startsWith("user:") ? line(account.slice("user:".length), 80) : line(account, 80);
}
