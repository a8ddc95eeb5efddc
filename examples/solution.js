/**
 * Groups the words that are anagrams of each other.
 * @param {string[]} words
 * @return {string[][]}
 */
const groupAnagrams = function (words) {
  const groups = new Map();
  for (const word of words) {
    const key = [...word].sort().join("");
    if (!groups.has(key)) {
      groups.set(key, []);
    }
    groups.get(key).push(word);
  }
  return [...groups.values()];
};
