/**
 * Longest certificate request that is parsed, in characters of base64 of PEM. That of a kubelet has about 1,000. Whoever asks chooses the
 * number of names, and parsing takes longer with each: half a second for 9,000.
 */
export const LONGEST_REQUEST = 4 * 1024;
