import { createSocket, type Socket } from 'node:dgram';

/** Ends of the question in a DNS message that begins at byte 12: its name and the bytes behind it (RFC 1035, 4.1.2). */
function questionOf(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}

const A = 1;
const NOT_FOUND = 3;
const TTL_SECONDS = 60;

/** The answer to a question for addresses: those of names that are known, and that all others do not exist. */
function answerTo(message: Buffer, names: ReadonlyMap<string, string>): Buffer {
  const { name, type, end } = questionOf(message);
  const address = names.get(name);
  const isKnown = address !== undefined;
  const hasAnswer = isKnown && type === A;
  const head = Buffer.from(message.subarray(0, end));
  // A response, with recursion, as it was asked for.
  head.writeUInt16BE(0x8180 | (isKnown ? 0 : NOT_FOUND), 2);
  for (const [at, count] of [
    [4, 1],
    [6, hasAnswer ? 1 : 0],
    [8, 0],
    [10, 0],
  ] as const)
    head.writeUInt16BE(count, at);
  if (!hasAnswer) return head;
  const record = Buffer.alloc(16);
  record.writeUInt16BE(0xc00c, 0);
  record.writeUInt16BE(A, 2);
  record.writeUInt16BE(1, 4);
  record.writeUInt32BE(TTL_SECONDS, 6);
  record.writeUInt16BE(4, 10);
  for (const [index, part] of address.split('.').entries()) record.writeUInt8(Number(part), 12 + index);
  return Buffer.concat([head, record]);
}

/** The resolver of a private network: a few names have addresses, and there are no others. */
export function resolver(names: Readonly<Record<string, string>>): Socket {
  const known = new Map(Object.entries(names));
  const socket = createSocket('udp4');
  socket.on('message', (message, { address: asking, port }) => {
    if (message.length >= 17) socket.send(answerTo(message, known), port, asking);
  });
  return socket;
}
