# What Doxygen reads of a source: "Recall@k" is no command of its, and moves and comparisons need no words.
s/Recall@/Recall\\@/g
/&&[^,]*noexcept;/d
/operator==.*= default;/d
