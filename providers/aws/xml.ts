/** An element of AWS' XML: its text, or its children by name, a list where a name repeats. Attributes are dropped. */
export type Element = string | { [name: string]: Element | Element[] };

const TOKEN = /<(\/?)([\w.:-]+)(?:\s[^>]*?)?(\/?)>|([^<]+)/g;
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", amp: '&' };

const unescaped = (text: string): string =>
  text.replace(/&(?:#(\d+)|#x([0-9a-f]+)|(\w+));/gi, (whole, decimal, hex, name) => {
    if (name) return ENTITIES[name] ?? whole;
    return String.fromCodePoint(decimal ? Number(decimal) : Number.parseInt(hex, 16));
  });

/**
 * Parses answers of AWS' query APIs. Not for other XML: no CDATA, comments or doctypes. Malformed input gives {}: a
 * proxy's HTML page must not count as an answer.
 */
export function parseXML(text: string): Record<string, Element | Element[]> {
  const root: Record<string, Element | Element[]> = {};
  const open: { name: string; children: Record<string, Element | Element[]>; text: string }[] = [
    { name: '', children: root, text: '' },
  ];
  for (const [, closing, name, empty, words] of text.replace(/<\?[^>]*\?>/g, '').matchAll(TOKEN)) {
    const top = open.at(-1)!;
    if (name === undefined) {
      top.text += words;
    } else if (closing) {
      if (open.length === 1 || top.name !== name) return {};
      open.pop();
      const isLeaf = Object.keys(top.children).length === 0;
      add(open.at(-1)!.children, name, isLeaf ? unescaped(top.text).trim() : top.children);
    } else if (empty) {
      add(top.children, name, '');
    } else {
      open.push({ name, children: {}, text: '' });
    }
  }
  return open.length === 1 ? root : {};
}

/**
 * Root element of an answer of S3 or Azure's blob storage, whatever its name: AWS' own client does not look at the name (botocore 1.44.8,
 * parsers.py, RestXMLParser), so what is compatible with S3 may have another. Undefined where the text is not one well-formed element, or is
 * a page of HTML: a proxy sent it.
 */
export function parseRoot(text: string): Element | undefined {
  const roots = Object.entries(parseXML(text));
  const [[name, root] = ['html', '']] = roots;
  return roots.length > 1 || Array.isArray(root) || name.toLowerCase() === 'html' ? undefined : root;
}

function add(children: Record<string, Element | Element[]>, name: string, child: Element): void {
  const before = children[name];
  children[name] = before === undefined ? child : [before, child].flat();
}

/** The first element at a path of names; undefined when there is none. */
export function elementAt(element: Element | Element[] | undefined, ...path: string[]): Element | undefined {
  const one = Array.isArray(element) ? element[0] : element;
  const [name, ...rest] = path;
  if (name === undefined || one === undefined) return one;
  return typeof one === 'string' ? undefined : elementAt(one[name], ...rest);
}

/** Text at a path; '' when there is none. */
export function textAt(element: Element | Element[] | undefined, ...path: string[]): string {
  const found = elementAt(element, ...path);
  return typeof found === 'string' ? found : '';
}

/** Items of a list at a path: AWS wraps them in `item` (EC2) or `member` (others). */
export function itemsAt(element: Element | Element[] | undefined, ...path: string[]): Element[] {
  const list = elementAt(element, ...path);
  if (list === undefined || typeof list === 'string') return [];
  return [list.item ?? list.member ?? []].flat();
}

/** Elements of a name in the list at a path, as in Route 53, S3 and Azure's blobs. */
export function childrenAt(element: Element | Element[] | undefined, name: string, ...path: string[]): Element[] {
  const list = elementAt(element, ...path);
  return list === undefined || typeof list === 'string' ? [] : [list[name] ?? []].flat();
}
