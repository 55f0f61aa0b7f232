import { useSay } from './toast';

export function Copy({ text, what }: { text: string; what: string }) {
  const say = useSay();
  async function copy() {
    try {
      await navigator.clipboard.writeText(text);
      say(`Copied ${what}.`);
    } catch {
      say('This browser does not let the page copy; mark the text and copy it yourself.');
    }
  }
  return (
    <button type="button" className="copy" onClick={() => void copy()} aria-label={`Copy ${what}`} title={`Copy ${what}`}>
      <svg viewBox="0 0 16 16" aria-hidden="true">
        <path d="M6 5.5h6.5v8H6zM3.5 10.5v-8H10" />
      </svg>
    </button>
  );
}
