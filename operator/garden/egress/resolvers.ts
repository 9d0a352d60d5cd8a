import { isIP } from 'node:net';
import { readText } from '../host/files.ts';

/** A server that this machine asks for names. */
export interface Resolver {
  host: string;
  port: number;
}

const PORT = 53;
/** As the C library: it asks no more of them. */
const MOST = 3;
/** A machine that changes its network writes the file anew. */
const FRESH_MS = 2_000;

/** The name servers of a resolv.conf, in its order; one on loopback where it names none, as the C library does. Pure. */
export function parseResolvers(text: string): Resolver[] {
  const hosts = text
    .split('\n')
    .map((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? '')
    .filter((host) => isIP(host.replace(/%.*$/, '')) !== 0);
  return (hosts.length > 0 ? hosts.slice(0, MOST) : ['127.0.0.1']).map((host) => ({ host, port: PORT }));
}

/** Tells this machine's name servers as the file has them now, read anew after two seconds. */
export function resolversOf(file: string): () => Promise<Resolver[]> {
  let read: { at: number; resolvers: Promise<Resolver[]> } | undefined;
  return () => {
    if (!read || performance.now() - read.at > FRESH_MS) {
      const resolvers = readText(file).then(
        (text) => parseResolvers(text ?? ''),
        () => parseResolvers(''),
      );
      read = { at: performance.now(), resolvers };
    }
    return read.resolvers;
  };
}
