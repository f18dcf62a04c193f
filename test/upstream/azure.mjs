// Azure OpenAI: a resource with deployments, at both styles of address.
import { embeddings } from "./openai.mjs";
import { talk } from "./talk.mjs";

const json = (body, status = 200) => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});
const error = (status, code, message) => json({ error: { code, message } }, status);
const dated = /^20\d\d-\d\d-\d\d(-preview)?$/;

// azure answers for <resource>.openai.azure.com.
//
//	resources    key by name of the resource
//	deployments  their names; any other is 404
export function azure({ resources, deployments }) {
  const chat = talk();
  return (got) => {
    const resource = /^([a-z0-9-]+)\.openai\.azure\.com$/.exec(got.host)?.[1];
    if (!resource || !(resource in resources)) return error(404, "404", `no such host: ${got.host}`);
    const { "api-key": key, authorization } = got.headers;
    if (key !== resources[resource] || authorization !== undefined)
      return error(401, "401", "Access denied due to invalid subscription key or wrong API endpoint.");
    const url = new URL(got.path, "http://azure"),
      version = url.searchParams.get("api-version");
    const one = /^\/openai\/v1\/(.+)$/.exec(url.pathname)?.[1],
      [, name, old] = /^\/openai\/deployments\/([^/]+)\/(.+)$/.exec(url.pathname) ?? [];
    const free = /^\/openai\/(models|responses)$/.exec(url.pathname)?.[1];
    if (
      one ? version !== null && !["v1", "latest", "preview"].includes(version) : !(old || free) || !dated.test(version)
    )
      return error(404, "404", "Resource not found");
    const operation = one ?? old ?? free;
    if (operation === "models")
      return json({ object: "list", data: deployments.map((id) => ({ id, object: "model" })) });
    const model = old
      ? decodeURIComponent(name)
      : (got.json?.model ?? /name="model"\r\n\r\n([^\r]*)/.exec(got.body)?.[1]);
    if (!deployments.includes(model))
      return error(404, "DeploymentNotFound", "The API deployment for this resource does not exist.");
    switch (operation) {
      case "chat/completions": {
        const reply = chat({ ...got, path: "/v1/chat/completions" });
        // Azure's streams begin with a chunk about its filter.
        if (got.json.stream)
          reply.body =
            `data: ${JSON.stringify({ choices: [], created: 0, id: "", model: "", object: "", prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }] })}\n\n` +
            reply.body;
        return reply;
      }
      case "responses":
        return chat({ ...got, path: "/v1/responses" });
      case "embeddings":
        return json(embeddings(got.json, model, {}));
      case "images/generations":
        return json({
          created: 1700000000,
          data: [{ b64_json: Buffer.from(`a picture of ${got.json.prompt}`).toString("base64") }],
        });
      case "audio/speech":
        return {
          status: 200,
          headers: { "content-type": "audio/mpeg" },
          body: Buffer.from(`${got.json.voice} says ${got.json.input}`),
        };
      case "audio/transcriptions":
        return json({ text: `heard ${got.body.includes("the sound of rain") ? "rain" : "nothing"}` });
    }
    return error(404, "404", "Resource not found");
  };
}
