"""Two numbers that add up to a target, in one pass."""


class Solution:
    def twoSum(self, nums: list[int], target: int) -> list[int]:
        seen: dict[int, int] = {}
        for index, number in enumerate(nums):
            if target - number in seen:
                return [seen[target - number], index]
            seen[number] = index
        return []
