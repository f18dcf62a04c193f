import "./monogram.css";

// Monogram shows the letters of something that has no picture.
export function Monogram({ letters }: { letters?: string }) {
  return (
    <span class="monogram" aria-hidden="true">
      {letters}
    </span>
  );
}
