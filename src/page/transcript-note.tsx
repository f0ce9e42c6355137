/** Explains contexts that Palimpsest made of an agent's transcript: no request was seen. */
export function TranscriptNote() {
  return (
    <div class="verdict warn" role="note">
      Palimpsest made these contexts from the agent's transcript. The agent sent requests of its own, which are not
      recorded. An object that has one line here may have been whole there. Sizes differ.
    </div>
  );
}
