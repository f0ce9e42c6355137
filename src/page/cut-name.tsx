/** Shows a name on one line. If it is too long, its middle is cut, so its end stays visible. */
export function CutName({ text }: { readonly text: string }) {
  const end = text.endsWith('…') ? 0 : text.lastIndexOf('/') + 1 || text.lastIndexOf(' ') + 1;
  return (
    <span class="cut-name">
      <span>{text.slice(0, end)}</span>
      <span>{text.slice(end)}</span>
    </span>
  );
}
