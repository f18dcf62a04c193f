// events yields the data of each event of an event stream.
export async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "",
    data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += value ?? "";
      // A CR at the end may be the first half of a CRLF.
      const lines = rest.split(done ? /\r\n|\n|\r/ : /\r\n|\n|\r(?!$)/);
      rest = done ? "" : lines.pop()!;
      for (const line of lines) {
        if (line === "") {
          if (data.length > 0) yield data.join("\n");
          data = [];
        } else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      }
      if (done) return;
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}
