// The server dies in the middle of a command, as when a machine is switched off, and comes again:
// the page finds it by itself, and nothing is lost or done twice.
import { TASK } from "../script.mjs";

export const alone = {};

export async function run(t) {
  t.expect(/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/);
  const page = await t.page();
  const session = await t.create(TASK.outlive);
  await page.goto(`${t.url}/sessions/${session}`);
  await page.waitForSelector(".step.tool.is-running .live pre:has-text('tick')");
  await t.step("the page says that the server is gone", async () => {
    await t.house.server.kill();
    await page.waitForSelector(".foot .offline");
    await page.waitForSelector(".top .offline");
  });
  await t.step("what is written meanwhile is not lost, and the page says why it is not sent", async () => {
    await page.fill("[data-composer]", "a draft");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".failure:has-text(\"can't be reached\")");
    return (await page.inputValue("[data-composer]")) === "a draft";
  });
  await t.step("the server comes again, and the page with it", async () => {
    await t.house.serve(t.house.server.listen);
    const begun = Date.now();
    await page.waitForSelector(".offline", { state: "detached" });
    t.figure(`the page was back ${Date.now() - begun} ms after the server`);
    await page.waitForSelector(".status:has-text('running')");
  });
  await t.step("the command outlived it, and the session goes on", async () => {
    t.world.open(session);
    await page.waitForSelector("text=Nothing was lost.");
    await page.waitForSelector(".status:has-text('answered')");
  });
  await t.step("it was done once", async () => {
    const { data } = await t.get(`/v1/sessions/${session}/events`);
    const outputs = data.filter((event) => event.type === "settled" && event.text?.includes("after"));
    return outputs.length === 1 && (await page.locator(".step.tool").count()) === 1;
  });
}
