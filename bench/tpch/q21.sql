-- Suppliers who kept orders waiting: those who were late, alone of several. Orders are joined with how many suppliers they have, and how many of these were
-- late, because a condition on rows of the outer query other than an equality is not in the dialect.
SELECT s_suppkey, count(*) AS numwait
FROM supplier, lineitem, orders, nation,
    (SELECT l_orderkey, count(DISTINCT l_suppkey) FROM lineitem GROUP BY l_orderkey) AS of_order (all_key, suppliers),
    (
        SELECT l_orderkey, count(DISTINCT l_suppkey)
        FROM lineitem
        WHERE l_receiptdate > l_commitdate
        GROUP BY l_orderkey
    ) AS late (late_key, late_suppliers)
WHERE s_suppkey = l_suppkey
  AND o_orderkey = l_orderkey
  AND o_orderstatus = 'F'
  AND l_receiptdate > l_commitdate
  AND all_key = l_orderkey
  AND suppliers > 1
  AND late_key = l_orderkey
  AND late_suppliers = 1
  AND s_nationkey = n_nationkey
  AND n_name = 'SAUDI ARABIA'
GROUP BY s_suppkey
ORDER BY numwait DESC, s_suppkey
LIMIT 100
