// A person shows the agent a picture: from a file, or from what was copied.
import { TASK } from "../script.mjs";

/// A PNG of forty pixels by twenty.
export const PNG = "iVBORw0KGgoAAAANSUhEUgAAACgAAAAUCAIAAABwJOjsAAADJklEQVR42l3NoeuwRhzA4V+4cGFhYWHhDQbDhQlDXnDBcILIgW8wTBjygoYLJwwZuPAJE0QEDQsLb1jYH3R/1qxf4enPh+HDoAza8F3k+8gPkR8jnwyJITUYw0+RnyOfI79ESoM11AZn+BLpIr9Gfot8NUwGbwiG3yN/RP6MEPnLsBtOw234O/JP5Fvk38h/HxkPlaEzGWckGWmGyWScYTPqDJfJOGPK8Bkhk3HGnnFm3NkrznmoHJ3LOCfJSXNMLuMcm1PnuFzGOVOOzwm5jHP2nDPnzl9xwUMV6ELGBUlBWmAKGRfYgrrAFTIumAp8QShkXLAXnAV38YpLHqpElzIuSUrSElPKuMSW1CWulHHJVOJLQinjkr3kLLnLV1zxUBW6knFFUpFWmErGFbairnCVjCumCl8RKhlX7BVnxV294oaHatCNjBuShrTBNDJusA11g2tk3DA1+IbQyLhhbzgb7uYVtzxUi25l3JK0pC2mlXGLbalbXCvjlqnFt4RWxi17y9lyt6+446E6dCfjjqQj7TCdjDtsR93hOhl3TB2+I3Qy7tg7zo67e8U9D9Wjexn3JD1pj+ll3GN76h7Xy7hn6vE9oZdxz95z9tz9Kx54qAE9yHggGUgHzCDjATtQD7hBxgPTgB8Ig4wH9oFz4B5e8chDjehRxiPJSDpiRhmP2JF6xI0yHplG/EgYZTyyj5wj9/iKPQ/l0V7GnsSTeoyXscd6ao/zMvZMHu8JXsae3XN6bv+KZx5qRs8ynklm0hkzy3jGztQzbpbxzDTjZ8Is45l95py551e88FALepHxQrKQLphFxgt2oV5wi4wXpgW/EBYZL+wL58K9vOKVh1rRq4xXkpV0xawyXrEr9YpbZbwyrfiVsMp4ZV85V+71FcNDgUbGkEAKBhmDhRocMoYJPARkDDuccPOKNx5qQ28y3kg20g2zyXjDbtQbbpPxxrThN8Im441949y4t1d88FAH+pDxQXKQHphDxgf2oD5wh4wPpgN/EA4ZH+wH58F9vOKLh7rQl4wvkov0wlwyvrAX9YW7ZHwxXfiLcMn4Yr84L+5Lxv8DXTEsNYrHVnYAAAAASUVORK5CYII=";

const seen = (page, selector) => page.waitForFunction((at) => document.querySelector(at)?.naturalWidth > 0, selector);

export async function run(t) {
  const page = await t.page();
  await t.step("a file goes with the first words", async () => {
    await page.goto(t.url);
    await page.fill("[data-composer]", TASK.short);
    await page.setInputFiles(".new-task input[type=file]", { name: "shot.png", mimeType: "image/png", buffer: Buffer.from(PNG, "base64") });
    await seen(page, ".composer .pictures img");
    await page.click("button:has-text('Start')");
    await page.waitForURL(/\/sessions\//);
    await seen(page, ".said .pictures img");
    await page.waitForSelector(".said .pictures:has-text('shot.png, 40 × 20')");
  });
  await t.step("what was copied goes with what is said later", async () => {
    await page.waitForSelector("text=Something short.");
    await page.fill("[data-composer]", TASK.short);
    await page.evaluate((content) => {
      const bytes = Uint8Array.from(atob(content), (char) => char.charCodeAt(0));
      const clipboardData = new DataTransfer();
      clipboardData.items.add(new File([bytes], "pasted.png", { type: "image/png" }));
      document.querySelector("[data-composer]").dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    }, PNG);
    await seen(page, ".composer .pictures img");
    await page.click("button:has-text('Send')");
    await page.waitForSelector(".said .pictures:has-text('pasted.png')");
    await page.waitForFunction(() => !document.querySelector(".composer .pictures"));
  });
  await t.step("words that were copied with a picture of them are words", () =>
    page.evaluate(() => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", "of a document");
      clipboardData.items.add(new File(["x"], "rendered.png", { type: "image/png" }));
      // Whoever prevents it takes it for a picture.
      return document.querySelector("[data-composer]").dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    }));
  await t.step("what is no picture is left out, and said to be", async () => {
    await page.setInputFiles(".foot input[type=file]", { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("notes") });
    await page.waitForSelector(".composer .pictures:has-text('notes.txt is left out: it is no PNG, JPEG, GIF or WebP')");
    await page.click("button:has-text('Leave out')");
    await page.waitForFunction(() => !document.querySelector(".composer .pictures"));
  });
}
