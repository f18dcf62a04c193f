// The scenarios that patterns.test.mjs plays with every tool.
import assert from "node:assert/strict";
import { until } from "../e2e/wait.mjs";

const image = {
  type: "image/png",
  data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
};
const commandOf = (call) => call.args.command ?? call.args.cmd;
const ok = (answer) => {
  assert.ok(!answer.error, `refused: ${answer.error?.status} ${answer.error?.text}`);
  return answer;
};

// scenarios return what a tool does, with a session and what it is about: {tool, family,
// seen}, seen() being the conversations that reached the upstream. A scenario does not
// apply to a tool for which when returns false.
export const scenarios = {
  answer: {
    title: "an answer, with its usage",
    async play(s) {
      s.user("Hello @@say hi@@");
      const { say, usage } = ok(await s.send());
      assert.equal(say, "You said: hi");
      assert.deepEqual(usage, { input: 31, output: 7 });
    },
  },
  tools: {
    title: "a tool is called and answered",
    when: (tool) => tool.tools.length,
    async play(s, { tool }) {
      s.user("Look around @@run ls -l 'a \"b\" ☃'@@");
      const { calls } = ok(await s.send());
      assert.deepEqual(
        calls.map((c) => [c.name, commandOf(c)]),
        [[tool.tools[0].name, "ls -l 'a \"b\" ☃'"]],
      );
      s.results(["total 0 ☃"]);
      assert.equal(ok(await s.send()).say, "It is total 0 ☃");
    },
  },
  parallel: {
    title: "two calls in one turn",
    when: (tool) => tool.tools.length,
    async play(s) {
      s.user("Both @@both ls ;; pwd@@");
      const { calls } = ok(await s.send());
      assert.deepEqual(calls.map(commandOf), ["ls", "pwd"]);
      const withIds = calls.filter((c) => c.id);
      assert.equal(new Set(withIds.map((c) => c.id)).size, withIds.length);
      s.results(["one", "two"]);
      assert.equal(ok(await s.send()).say, "They are one and two");
    },
  },
  thinking: {
    title: "thoughts before a call, and back with its result",
    when: (tool) => tool.tools.length,
    async play(s, { tool, family, seen }) {
      s.user("Think @@think ls@@");
      const { thoughts } = ok(await s.send());
      if (tool.shows) assert.equal(thoughts.join(""), "Let me see.");
      s.results(["21"]);
      assert.equal(ok(await s.send()).say, "It is 21");
      const responses = ["responses", "socket"].includes(tool.driver);
      const keeps = responses || (["messages", "gemini"].includes(tool.driver) && family.id !== "openai");
      if (family.signs && keeps)
        assert.equal(
          seen()
            .at(-1)
            .turns.flatMap((t) => t.thoughts).length,
          1,
          "signatures",
        );
    },
  },
  images: {
    title: "a picture",
    async play(s) {
      s.user("What is this? @@look@@", [image]);
      assert.equal(ok(await s.send()).say, `I see image/png of ${Buffer.from(image.data, "base64").length} bytes`);
    },
  },
  long: {
    title: "a session of 24 turns with calls between",
    async play(s, { tool }) {
      let turns = 0;
      for (let i = 0; i < 12; i++) {
        const run = tool.tools.length > 0 && i % 2 === 0;
        s.user(run ? `Go on ${i} @@run step ${i}@@` : `Go on ${i} @@count@@`);
        const answer = ok(await s.send());
        if (run) {
          s.results([`${i}`]);
          assert.equal(ok(await s.send()).say, `It is ${i}`);
        } else assert.equal(answer.say, `Turn ${turns + 1}`);
        turns += run ? 2 : 1;
      }
    },
  },
  compaction: {
    title: "an overflow that the tool recognizes, and its compaction",
    async play(s, { tool, at }) {
      s.user("Earlier @@say much@@");
      ok(await s.send());
      s.user("Go on @@full@@");
      const { error } = await s.send();
      assert.ok(error && tool.full(error), `not taken for an overflow: ${error?.status} ${error?.text}`);
      if (tool.compacts === "counts") {
        const res = await fetch(`${at.url}/v1beta/models/${at.model}:countTokens`, {
          method: "POST",
          headers: { "content-type": "application/json", "x-goog-api-key": at.key },
          body: JSON.stringify({ contents: [{ role: "user", parts: [{ text: "Earlier, and going on" }] }] }),
        });
        assert.ok((await res.json()).totalTokens > 0);
      }
      let stands;
      if (tool.compacts === "trigger") {
        s.restart("Earlier");
        s.input.push({ type: "compaction_trigger" });
        const { items } = ok(await s.send());
        assert.deepEqual(
          items.map((i) => i.type),
          ["compaction"],
        );
        s.restart("Go on");
        s.input.unshift(items[0]);
      } else {
        s.restart("Earlier: much.\n\nCreate a detailed summary of the conversation so far.");
        stands = ok(await s.send()).say;
        assert.match(stands, /^SUMMARY/);
        s.restart(`This session continues: ${stands}`);
      }
      if (tool.compacts !== "trigger") s.user("Go on @@full@@");
      assert.equal(ok(await s.send()).say, "Going on");
    },
  },
  limit: {
    title: "a rate limit with its time, and the next try",
    long: true, // it waits for a second
    async play(s) {
      s.user("Hurry @@limit@@");
      const { error } = await s.send();
      assert.ok([429, 200].includes(error?.status), `${error?.status} ${error?.text}`);
      if (error.headers) {
        const told = error.headers.get("retry-after") ?? /"retryDelay":\s*"(\d+)/.exec(error.text)?.[1];
        assert.ok(Number(told) >= 1, `no time: ${error.text}`);
      }
      const answer = await until("the account is used again", async () => {
        const a = await s.send();
        return a.error ? null : a;
      });
      assert.equal(answer.say, "Served");
    },
  },
  errors: {
    title: "a refusal with the vendor's words",
    async play(s) {
      s.user("No @@refuse@@");
      const { error } = await s.send();
      assert.equal(error?.status, 400, error?.text);
      assert.match(error.text, /test refuses this|invalid argument/);
    },
  },
  aborts: {
    title: "a person interrupts, the upstream is left, the session goes on",
    async play(s, { seen, fresh }) {
      s.user("Slowly @@slow@@");
      const ctl = new AbortController();
      let pieces = 0;
      const on = () => ++pieces === 3 && ctl.abort();
      await assert.rejects(
        s.send({ signal: ctl.signal, on }),
        (e) => e.name === "AbortError" || /closed with/.test(e.message),
        "not interrupted",
      );
      await until("the upstream is left", () => seen().at(-1).request.aborted);
      s.close?.();
      const next = fresh();
      next.user("Again @@say more@@");
      assert.equal(ok(await next.send()).say, "You said: more");
      next.close?.();
    },
  },
};
