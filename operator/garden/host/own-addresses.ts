import { readFileSync } from 'node:fs';
import { addressList } from '../../api/address-range.ts';

/**
 * The machine's own IPv4 addresses and ranges, from the text of /proc/net/fib_trie. os.networkInterfaces omits
 * interfaces whose link is down, for example Docker's bridge without containers, although their addresses answer. Pure.
 */
export function parseLocalAddresses(trie: string): string[] {
  const found = new Set<string>();
  let isOurTable = false;
  let address = '';
  for (const line of trie.split('\n')) {
    // Transparent proxies have tables in which all addresses are local.
    if (/^\S/.test(line)) isOurTable = /^(Main|Local):/.test(line);
    address = /\|-- (\S+)$/.exec(line)?.[1] ?? address;
    const bits = /^\s+\/(\d+) \S+ LOCAL$/.exec(line)?.[1];
    if (isOurTable && bits) found.add(bits === '32' ? address : `${address}/${bits}`);
  }
  return [...found];
}

/** The machine's IPv6 addresses, from the text of /proc/net/if_inet6. Pure. */
export const parseLocalAddresses6 = (text: string): string[] =>
  [...text.matchAll(/^[0-9a-f]{32}/gm)].map(([digits]) => digits.match(/.{4}/g)!.join(':'));

/** Whether an address is the machine's own now. Throws where the kernel does not tell. */
export function isOwnAddress(address: string): boolean {
  const local = parseLocalAddresses(readFileSync('/proc/net/fib_trie', 'utf8')).map((one) =>
    one.includes('/') ? one : `${one}/32`,
  );
  return addressList([...local, ...ownAddresses6().map((one) => `${one}/128`)]).has(address);
}

function ownAddresses6(): string[] {
  try {
    return parseLocalAddresses6(readFileSync('/proc/net/if_inet6', 'utf8'));
  } catch (error) {
    // A kernel without IPv6 lacks this file.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}
