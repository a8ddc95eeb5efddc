// The length of the longest substring without repeated characters, with a sliding window.
#include <algorithm>
#include <array>
#include <string>

class Solution {
public:
    int lengthOfLongestSubstring(std::string s) {
        std::array<int, 256> last;
        last.fill(-1);
        int start = 0, best = 0;
        for (int i = 0; i < static_cast<int>(s.size()); ++i) {
            auto &seen = last[static_cast<unsigned char>(s[i])];
            start = std::max(start, seen + 1);
            seen = i;
            best = std::max(best, i - start + 1);
        }
        return best;
    }
};
