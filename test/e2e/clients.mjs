// A machine with connections and the official clients for it.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

// clients makes the machine. The result has machineId, apiKey, the connections'
// ids in order, openai, anthropic and post(path, body).
export async function clients(gateway, operator, connections) {
  const m = await operator.machine();
  m.ids = [];
  for (const c of connections) m.ids.push((await operator.connect(m.machineId, c)).id);
  m.openai = new OpenAI({ apiKey: m.apiKey, baseURL: gateway.url + "/v1", maxRetries: 0 });
  m.anthropic = new Anthropic({ apiKey: m.apiKey, baseURL: gateway.url, maxRetries: 0 });
  m.post = (path, body) =>
    gateway.fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${m.apiKey}` },
      body: JSON.stringify(body),
    });
  return m;
}
