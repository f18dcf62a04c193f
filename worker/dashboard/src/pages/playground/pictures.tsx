import { useRef } from "preact/hooks";
import { Button } from "../../ui";
import type { Picture } from "./body";

const types = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const maxBytes = 8 << 20; // of one image
const maxPictures = 8;

// readPictures adds images to a message. It throws an Error for a file that cannot be
// sent; those before it are added.
export async function readPictures(files: Iterable<File>, has: Picture[], add: (p: Picture) => void) {
  let n = has.length;
  for (const file of files) {
    const name = file.name || "Image";
    if (!types.includes(file.type)) throw new Error(`${name} is not a PNG, JPEG, WebP or GIF image.`);
    if (file.size > maxBytes) throw new Error(`${name} is larger than ${maxBytes >> 20} MiB.`);
    if (++n > maxPictures) throw new Error(`A message can have up to ${maxPictures} images.`);
    add({ name, url: await dataUrl(file) });
  }
}

const dataUrl = (file: File) =>
  new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result as string);
    reader.onerror = () => reject(new Error(`${file.name} could not be read.`));
    reader.readAsDataURL(file);
  });

// Attach selects images from files.
export function Attach({ onFiles }: { onFiles: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        hidden
        multiple
        accept={types.join(",")}
        aria-label="Images"
        onChange={(e) => {
          const files = [...(e.currentTarget.files ?? [])];
          e.currentTarget.value = ""; // the same file can be selected again
          onFiles(files);
        }}
      />
      <Button icon="plus" onClick={() => input.current?.click()}>
        Add images
      </Button>
    </>
  );
}

// Pictures shows the images of a message.
export function Pictures({ list, onRemove }: { list: Picture[]; onRemove?: (at: number) => void }) {
  if (list.length === 0) return null;
  return (
    <ul class="pictures" aria-label="Images">
      {list.map((p, i) => (
        <li key={i}>
          <img src={p.url} alt={p.name} />
          {onRemove && <Button kind="quiet" icon="close" aria-label={`Remove ${p.name}`} onClick={() => onRemove(i)} />}
        </li>
      ))}
    </ul>
  );
}
