// kindNames are the names of the kinds of models.
export const kindNames: Record<string, string> = {
  llm: "Chat",
  embedding: "Embeddings",
  image: "Images",
  tts: "Speech",
  stt: "Transcription",
  imageToText: "Image to text",
  video: "Video",
  music: "Music",
  rerank: "Rerank",
  webSearch: "Web search",
  webFetch: "Web fetch",
};

// modelKinds are the kinds of models; the others are kinds of services.
export const modelKinds = ["llm", "embedding", "image", "tts", "stt", "imageToText", "video", "music", "rerank"];

const segments: Record<string, string> = { imageToText: "image-to-text", webSearch: "web", webFetch: "web" };

// segmentOf returns the segment of GET /api/models/list/{segment} that lists a kind.
export const segmentOf = (kind: string) => segments[kind] ?? kind;
