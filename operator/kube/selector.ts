const TERM = /^\s*(!?)([\w./-]+)\s*(?:(==|=|!=)\s*([\w.-]*)|(in|notin)\s*\(([^)]*)\))?\s*$/;

/** Whether labels match a label selector in its text form; undefined when the selector cannot be parsed. */
export function matchesSelector(selector: string, labels: Record<string, string> = {}): boolean | undefined {
  let all = true;
  // Commas separate terms; commas in parentheses separate values.
  for (const term of selector.split(/,(?![^(]*\))/)) {
    const parts = TERM.exec(term);
    if (!parts) return undefined;
    const [, not, key, operator, value, set, values] = parts;
    const actual = Object.hasOwn(labels, key!) ? labels[key!] : undefined;
    let holds: boolean;
    if (operator) {
      if (not) return undefined;
      holds = (actual === value) === (operator !== '!=');
    } else if (set) {
      if (not) return undefined;
      const listed = actual !== undefined && values!.split(',').some((item) => item.trim() === actual);
      holds = listed === (set === 'in');
    } else {
      holds = (actual !== undefined) === !not;
    }
    all &&= holds;
  }
  return all;
}
