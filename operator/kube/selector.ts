const TERM = /^\s*(!?)([\w./-]+)\s*(?:(==|=|!=)\s*([\w.-]*)|(in|notin)\s*\(([^)]*)\))?\s*$/;

/** Whether labels match a label selector in its text form; undefined when the selector is none that we can read. */
export function matchesSelector(selector: string, labels: Record<string, string> = {}): boolean | undefined {
  let all = true;
  // Commas part terms, but those in parentheses part values.
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

/** A label selector as objects have it. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** Whether labels match a selector: an empty one matches all, one that cannot be read none. */
export function selects(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels?: Record<string, string>,
): boolean {
  const terms = [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(({ key, operator, values = [] }) => {
      if (operator === 'Exists') return key;
      if (operator === 'DoesNotExist') return `!${key}`;
      return `${key} ${operator.toLowerCase()} (${values.join(',')})`;
    }),
  ];
  return terms.length === 0 || matchesSelector(terms.join(','), labels) === true;
}
