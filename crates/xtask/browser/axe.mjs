// Whether people who hear a page, or see little, can use it: the rules of axe.
import fs from "node:fs";
import { createRequire } from "node:module";

const source = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/// What is wrong, one line each, worst first.
export async function findings(page) {
  // By the debugger's way in: the page's own policy lets no script be added.
  await page.evaluate(source);
  const violations = await page.evaluate((tags) => axe.run(document, { runOnly: tags }).then((found) => found.violations), TAGS);
  return violations.map(({ id, impact, nodes }) => ({
    impact,
    text: `${impact}: ${id} at ${nodes.slice(0, 3).map((node) => node.target.join(" ")).join(", ")} (${nodes.length}): ${nodes[0].failureSummary.split("\n")[1]?.trim()}`,
  }));
}

export const isBad = ({ impact }) => impact === "serious" || impact === "critical";
