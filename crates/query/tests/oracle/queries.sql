-- all: rows as they are
SELECT id, city, born, income, age, active FROM people;

-- filter
SELECT id, age FROM people WHERE age > 30 AND city = 'oslo';

-- filter_or_null
SELECT id FROM people WHERE age > 30 OR active;

-- filter_not
SELECT id FROM people WHERE NOT (age > 30 OR active);

-- is_true_false
SELECT id, active IS TRUE AS a, active IS NOT TRUE AS b, active IS FALSE AS c, active IS UNKNOWN AS d, active IS NOT FALSE AS e FROM people;

-- is_null
SELECT id FROM people WHERE income IS NULL OR city IS NOT NULL;

-- distinct_from
SELECT id, age IS DISTINCT FROM 30 AS d, city IS NOT DISTINCT FROM 'oslo' AS e FROM people;

-- between
SELECT id FROM people WHERE income BETWEEN -100.5 AND 200 AND born NOT BETWEEN DATE '1980-01-01' AND '1990-12-31';

-- in_numbers
SELECT id FROM people WHERE age IN (1, 30, 31, 32, 33) OR age NOT IN (2, 20);

-- in_with_null
SELECT id FROM people WHERE age IN (30, NULL) OR age NOT IN (29, NULL);

-- in_texts
SELECT id FROM people WHERE city IN ('oslo', 'nowhere', 'rome');

-- not_in_texts
SELECT id, city FROM people WHERE city NOT IN ('oslo', 'rome');

-- like
SELECT id, city LIKE '%o%' AS a, city NOT LIKE '_o%' AS b FROM people;

-- text_order
SELECT id FROM people WHERE city >= 'nairobi' AND 'rome' > city;

-- arithmetic
SELECT id, age + 1 AS a, -age AS b, income * 2.5 AS c, income - age AS d, (age * age - 3) % 7 AS e FROM people;

-- division
SELECT id, income / 3 AS a, income / nullif(age, 0) AS b, 1.0 / 7 AS c, round(income / 7, 3) AS d FROM people;

-- round
SELECT id, round(income) AS a, round(income, 1) AS b, round(income * income, 2) AS c FROM people;

-- case
SELECT id, CASE WHEN age > 40 THEN 'old' WHEN age > 20 THEN 'grown' ELSE 'young' END AS c, CASE WHEN active THEN income END AS d FROM people;

-- case_operand
SELECT id, CASE city WHEN 'oslo' THEN 1 WHEN 'rome' THEN 2.5 ELSE 0 END AS c FROM people;

-- coalesce_nullif
SELECT id, coalesce(income, 0) AS a, coalesce(city, 'none') AS b, nullif(age, 30) AS c, nullif(city, 'oslo') AS d FROM people;

-- dates
SELECT id, born + 30 AS a, born - 1 AS b, DATE '2020-02-29' - born AS c, EXTRACT(YEAR FROM born) AS y, EXTRACT(MONTH FROM born) AS m FROM people;

-- interval
SELECT person FROM visits WHERE day < DATE '2020-01-31' + INTERVAL '1' MONTH AND day + INTERVAL '10' DAY > DATE '2020-01-15';

-- cast
SELECT id, CAST(age AS decimal(10, 2)) / 7 AS a, '2000-01-01'::date < born AS b FROM people;

-- substring
SELECT substring(city FROM 1 FOR 2) AS s, count(*) AS n FROM people GROUP BY substring(city FROM 1 FOR 2);

-- count_all
SELECT count(*) AS n, count(age) AS a, count(DISTINCT city) AS c, count(DISTINCT income) AS d FROM people;

-- totals
SELECT sum(income) AS s, avg(income) AS a, min(income) AS l, max(income) AS h, sum(age) AS t, avg(age) AS v FROM people;

-- totals_of_none
SELECT count(*) AS n, sum(age) AS s, avg(age) AS a, min(born) AS l, bool_or(active) AS o FROM people WHERE age > 1000;

-- groups
SELECT city, count(*) AS n, sum(income) AS s, avg(age) AS a, min(born) AS l, max(city) AS h FROM people GROUP BY city;

-- groups_of_two
SELECT city, active, count(*) AS n, bool_or(age > 40) AS o, bool_and(income > 0) AS b FROM people GROUP BY city, active;

-- groups_of_expressions
SELECT EXTRACT(YEAR FROM born) AS y, age % 10 AS t, count(*) AS n FROM people GROUP BY y, age % 10;

-- groups_by_place
SELECT age, count(*) AS n FROM people GROUP BY 1;

-- groups_of_dates
SELECT day, sum(cost) AS s FROM visits GROUP BY day;

-- having
SELECT ward, count(*) AS n FROM visits GROUP BY ward HAVING count(*) > 2 AND sum(cost) > 100;

-- having_alone
SELECT sum(cost) AS s FROM visits HAVING count(*) > 3;

-- having_average
SELECT ward FROM visits GROUP BY ward HAVING avg(cost) > 50.5;

-- aggregate_filter
SELECT ward, count(*) FILTER (WHERE cost > 50) AS n, sum(cost) FILTER (WHERE day > '2020-01-20') AS s FROM visits GROUP BY ward;

-- aggregate_expressions
SELECT ward, sum(cost) / count(*) AS a, sum(cost * 2) - min(cost) AS b, max(cost) - min(cost) AS c FROM visits GROUP BY ward;

-- variance
SELECT ward, var_samp(cost) AS v, stddev_samp(cost) AS s, stddev_samp(person) AS p FROM visits GROUP BY ward;

-- percentiles
SELECT ward, percentile_disc(0.5) WITHIN GROUP (ORDER BY cost) AS m, percentile_disc(0.9) WITHIN GROUP (ORDER BY day) AS d, percentile_disc(0) WITHIN GROUP (ORDER BY person) AS z FROM visits GROUP BY ward;

-- conditional_sum
SELECT 100.00 * sum(CASE WHEN city LIKE 'o%' THEN income ELSE 0 END) / nullif(sum(income), 0) AS share FROM people;

-- distinct
SELECT DISTINCT city, active FROM people;

-- distinct_expression
SELECT DISTINCT age % 3 AS r, city IS NULL AS n FROM people;

-- order: ordered
SELECT age, id FROM people ORDER BY age DESC, id;

-- order_nulls: ordered
SELECT city, income, id FROM people ORDER BY city NULLS FIRST, income DESC NULLS LAST, 3;

-- order_hidden: ordered
SELECT id FROM people ORDER BY coalesce(income, -1) DESC, born, id DESC;

-- limit: ordered
SELECT id, income FROM people ORDER BY income DESC, id LIMIT 5;

-- limit_groups: ordered
SELECT ward, sum(cost) AS s FROM visits GROUP BY ward ORDER BY s DESC, ward LIMIT 2;

-- order_by_aggregate: ordered
SELECT ward FROM visits GROUP BY ward ORDER BY count(*) DESC, sum(cost), ward;

-- limit_zero: ordered
SELECT id FROM people ORDER BY id LIMIT 0;

-- union_all
SELECT id, city FROM people WHERE age > 40 UNION ALL SELECT person, ward FROM visits UNION ALL SELECT id, CASE WHEN FALSE THEN city END FROM people;

-- union
SELECT id AS x FROM people UNION SELECT person FROM visits;

-- union_of_kinds: ordered
SELECT income AS x, DATE '2001-01-01' AS d FROM people UNION ALL SELECT age, born FROM people ORDER BY 1, d NULLS FIRST;

-- join
SELECT p.id, v.day, v.cost, p.city FROM visits v JOIN people p ON v.person = p.id;

-- join_where
SELECT p.id, v.cost FROM people p, visits v WHERE p.id = v.person AND v.cost > p.income AND p.active;

-- join_using
SELECT ward, floor, sum(cost) AS s FROM visits JOIN wards USING (ward) GROUP BY ward, floor;

-- join_three
SELECT p.city, w.floor, count(*) AS n, sum(v.cost) AS s FROM visits v JOIN people p ON p.id = v.person JOIN wards w ON w.ward = v.ward GROUP BY p.city, w.floor;

-- join_condition
SELECT v.person, v.cost FROM visits v JOIN people p ON p.id = v.person AND v.cost * 2 > coalesce(p.income, 0) AND p.age > 10;

-- join_keys
SELECT v.day, p.id FROM visits v JOIN people p ON v.tag = p.tag;

-- join_decimal
SELECT v.person FROM visits v JOIN people p ON p.id = v.cost;

-- left_join
SELECT v.person, v.day, p.city, p.income FROM visits v LEFT JOIN people p ON v.person = p.id;

-- left_join_filtered
SELECT v.person, p.city FROM visits v LEFT JOIN people p ON v.person = p.id AND p.active AND v.cost > 30;

-- left_join_where
SELECT v.person FROM visits v LEFT JOIN people p ON v.person = p.id WHERE p.id IS NULL AND v.cost > 10;

-- left_join_of_many
SELECT p.id, v.day, v.cost FROM people p LEFT JOIN visits v ON v.person = p.id AND v.cost > 20;

-- left_join_grouped
SELECT p.id, count(v.day) AS n, sum(v.cost) AS s FROM people p LEFT JOIN visits v ON v.person = p.id GROUP BY p.id;

-- semi_join
SELECT p.id FROM people p SEMI JOIN visits v ON v.person = p.id AND v.cost > 40;

-- anti_join
SELECT p.id FROM people p ANTI JOIN visits v ON v.person = p.id AND v.ward = 'b';

-- in_subquery
SELECT id FROM people WHERE id IN (SELECT person FROM visits WHERE cost > 40);

-- not_in_subquery
SELECT id FROM people WHERE id NOT IN (SELECT person FROM visits WHERE cost > 40);

-- in_grouped_subquery
SELECT id, city FROM people WHERE id IN (SELECT person FROM visits GROUP BY person HAVING sum(cost) > 90);

-- in_nullable
SELECT v.person FROM visits v WHERE v.ward IN (SELECT city FROM people) AND v.cost > 10;

-- in_correlated
SELECT p.id FROM people p WHERE p.age IN (SELECT v.person FROM visits v WHERE v.person = p.id);

-- exists
SELECT p.id FROM people p WHERE EXISTS (SELECT * FROM visits v WHERE v.person = p.id AND v.cost < 30) AND p.age > 10;

-- not_exists
SELECT p.id FROM people p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.person = p.id AND v.day > DATE '2020-01-10');

-- scalar_subquery
SELECT person, cost FROM visits WHERE cost > (SELECT avg(cost) FROM visits);

-- scalar_in_select
SELECT id, income - (SELECT max(income) FROM people) AS d FROM people;

-- scalar_correlated
SELECT p.id, p.income FROM people p WHERE p.income > (SELECT sum(v.cost) FROM visits v WHERE v.person = p.id);

-- scalar_correlated_count
SELECT p.id, (SELECT count(*) FROM visits v WHERE v.person = p.id) AS n, (SELECT 0.5 * avg(v.cost) FROM visits v WHERE v.person = p.id) AS a FROM people p;

-- scalar_in_having
SELECT ward, sum(cost) AS s FROM visits GROUP BY ward HAVING sum(cost) * 3 > (SELECT sum(cost) FROM visits);

-- derived
SELECT t.n, count(*) AS persons FROM (SELECT person, count(*) AS n FROM visits GROUP BY person) AS t GROUP BY t.n;

-- derived_filtered
SELECT d.person, d.s FROM (SELECT person, ward, sum(cost) AS s FROM visits GROUP BY person, ward) d WHERE d.ward = 'a' AND d.s > 10;

-- cte
WITH sums AS (SELECT person, sum(cost) AS s FROM visits GROUP BY person), top AS (SELECT max(s) AS m FROM sums) SELECT person, s FROM sums, top WHERE s = m;

-- cte_twice
WITH t AS (SELECT ward, count(*) AS n, sum(cost) AS s FROM visits GROUP BY ward) SELECT a.ward, a.n, b.s FROM t a JOIN t b ON a.ward = b.ward;

-- cte_renamed
WITH t(x, y) AS (SELECT id, age FROM people WHERE active) SELECT x + y AS z FROM t;

-- star_in_derived
SELECT id, city FROM (SELECT * FROM people) p WHERE age > 30;

-- row_number: ordered
SELECT id, row_number() OVER (ORDER BY income DESC, id) AS r FROM people ORDER BY id;

-- rank_in_partitions
SELECT person, day, rank() OVER (PARTITION BY ward ORDER BY cost) AS r FROM visits;

-- lag_lead
SELECT id, lag(age) OVER (ORDER BY id) AS a, lead(age, 2) OVER (ORDER BY id) AS b, lag(income) OVER (PARTITION BY city ORDER BY id DESC) AS c FROM people;

-- running
SELECT id, sum(income) OVER (PARTITION BY city ORDER BY id ROWS UNBOUNDED PRECEDING) AS a, min(age) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS b FROM people;

-- moving
SELECT id, sum(age) OVER (ORDER BY id ROWS 2 PRECEDING) AS a, avg(age) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS b, count(age) OVER (ORDER BY id ROWS 1 PRECEDING) AS c FROM people;

-- whole_partition
SELECT person, cost, cost - avg(cost) OVER (PARTITION BY ward) AS d, count(*) OVER () AS n FROM visits;

-- window_of_groups
SELECT ward, sum(cost) AS s, rank() OVER (ORDER BY sum(cost) DESC) AS r, sum(sum(cost)) OVER () AS t FROM visits GROUP BY ward;

-- first_of_each
SELECT person, day FROM (SELECT person, day, row_number() OVER (PARTITION BY person ORDER BY cost DESC, day, ward) AS r FROM visits) t WHERE r = 1;

-- window_filtered_by_partition
SELECT w, r FROM (SELECT ward AS w, rank() OVER (PARTITION BY ward ORDER BY cost) AS r FROM visits) t WHERE w <> 'c';

-- constants
SELECT id, 1 + 2 * 3 AS a, 0.10 AS b, DATE '2020-01-31' + INTERVAL '1' MONTH > DATE '2020-02-28' AS c, TRUE AND NULL AS d FROM people;

-- always_false
SELECT id FROM people WHERE 1 = 0 OR age > 30 AND FALSE;

-- top_in_derived: ordered
SELECT t.id, t.age FROM (SELECT id, age FROM people ORDER BY age DESC NULLS LAST, id LIMIT 7) t WHERE t.age > 20 ORDER BY t.id;

-- distinct_order: ordered
SELECT DISTINCT ward, person FROM visits ORDER BY person DESC, ward LIMIT 9;

-- cte_twice_renamed
WITH t AS (SELECT ward, count(*) AS n FROM visits GROUP BY ward) SELECT ward AS w, n AS m FROM t UNION ALL SELECT ward, n FROM t;

-- early: one sort
SELECT p.id, p.age, count(*) AS n, sum(v.cost) AS c, min(v.day) AS first, max(v.cost) AS most, avg(v.cost) AS mean
FROM visits v JOIN people p ON v.person = p.id WHERE v.cost > -50 AND p.age > 20 GROUP BY p.id, p.age;

-- early_by_the_other_key: one sort
SELECT v.person, p.city, count(*) AS n, count(*) FILTER (WHERE v.cost > 0) AS positive FROM people p JOIN visits v ON p.id = v.person
GROUP BY p.city, v.person HAVING count(*) > 1;

-- early_left: one sort
SELECT p.id, count(v.person) AS n, count(*) AS m, count(*) FILTER (WHERE v.cost > 0) AS positive, sum(v.cost) AS c, max(v.day) AS last, avg(v.cost) AS mean,
  bool_or(v.cost > 50) AS any_high, stddev_samp(v.cost) AS spread
FROM people p LEFT JOIN visits v ON p.id = v.person AND v.ward <> 'a' WHERE p.age < 80 GROUP BY p.id;

-- early_with_others: one sort
SELECT p.id, sum(w.floor) AS floors, count(w.floor) AS known, max(v.cost) AS most FROM visits v JOIN wards w ON v.ward = w.ward JOIN people p ON v.person = p.id
WHERE p.active GROUP BY p.id;

-- early_nullable: one sort
SELECT p.age, t.n FROM (SELECT p.tag AS tag, p.id AS id, count(*) AS n FROM people p JOIN visits v ON p.tag = v.tag GROUP BY p.tag, p.id) t JOIN people p ON t.id = p.id;

-- not_early_left: coalesce
SELECT p.id, sum(coalesce(v.cost, 1)) AS c FROM people p LEFT JOIN visits v ON p.id = v.person GROUP BY p.id;

-- not_early_mixed: both sides
SELECT p.id, count(*) FILTER (WHERE v.cost > p.income) AS n FROM people p JOIN visits v ON p.id = v.person GROUP BY p.id;

-- looked_up_groups: with the groups
SELECT v.person, v.cost, g.n FROM visits v JOIN (SELECT person, avg(cost) AS mean, count(*) AS n FROM visits GROUP BY person HAVING count(*) > 1) g
ON v.person = g.person WHERE v.cost > g.mean;

-- looked_up_groups_in: with the groups
SELECT id, age FROM people WHERE id IN (SELECT person FROM visits WHERE ward <> 'b' GROUP BY person HAVING sum(cost) > 10);

-- looked_up_groups_not_in: with the groups
SELECT id, age FROM people p WHERE NOT EXISTS (SELECT g.person FROM (SELECT person, max(cost) AS most FROM visits GROUP BY person) g WHERE g.person = p.id AND g.most > 20);

-- looked_up_groups_left: with the groups
SELECT p.id, g.mean, g.n, g.last FROM people p LEFT JOIN (SELECT person, avg(cost) AS mean, count(*) AS n, max(day) AS last FROM visits GROUP BY person) g
ON p.id = g.person;

-- looked_up_groups_nullable: with the groups
SELECT p.id, g.n, g.mean FROM people p LEFT JOIN (SELECT tag, count(*) AS n, avg(cost) AS mean, min(ward) AS least FROM visits GROUP BY tag) g ON p.tag = g.tag AND g.n < 4;

-- looked_up_groups_turned: with the groups
SELECT g.person, p.age, g.n FROM (SELECT person, count(*) AS n, min(cost) AS least FROM visits GROUP BY person) g JOIN people p ON g.person = p.id WHERE g.least < p.age;

-- looked_up_groups_scalar: with the groups
SELECT v.person, v.cost FROM visits v WHERE v.cost < (SELECT avg(o.cost) FROM visits o WHERE o.person = v.person);

-- looked_up_groups_pairs: with the groups
SELECT v.person, v.day, v.cost FROM visits v JOIN (SELECT person, day, max(cost) AS most FROM visits GROUP BY person, day) g ON v.day = g.day AND v.person = g.person AND v.cost = g.most;

-- rollup
SELECT city, active, count(*) AS n, sum(income) AS s, avg(age) AS a, grouping(city, active) AS g FROM people GROUP BY ROLLUP (city, active);

-- cube_of_secret_keys
SELECT person, ward, count(*) AS n, max(cost) AS most, grouping(ward) AS g FROM visits GROUP BY CUBE (person, ward) HAVING count(*) > 1;

-- grouping_sets: ordered
SELECT ward, extract(MONTH FROM day) AS m, count(DISTINCT person) AS n, grouping(ward) + 2 * grouping(extract(MONTH FROM day)) AS g FROM visits
GROUP BY GROUPING SETS ((ward), (extract(MONTH FROM day)), ()) ORDER BY grouping(ward, extract(MONTH FROM day)), ward NULLS LAST, m, n;

-- rollup_beside_a_key
SELECT city, active, age, count(*) AS n FROM people GROUP BY active, ROLLUP (city, age), ROLLUP (active);

-- rollup_of_joins
SELECT p.city, v.ward, sum(v.cost) AS c FROM people p JOIN visits v ON p.id = v.person WHERE v.cost > 0 GROUP BY ROLLUP (p.city, v.ward);

-- rollup_of_parts
SELECT city, active, age, count(*) AS n FROM people WHERE age > 90 GROUP BY ROLLUP ((city, active), age);

-- grouping_alone
SELECT city, grouping(city) AS g, count(*) AS n FROM people GROUP BY city;

-- grouping_sets_of_none
SELECT count(*) AS n FROM people WHERE age > 98 GROUP BY GROUPING SETS ((), ());

-- distinct_of_sets
SELECT DISTINCT city, count(*) > 2 AS many FROM people GROUP BY CUBE (city, active);

-- sets_in_derived
SELECT t.n, count(*) AS m FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ROLLUP (ward)) t GROUP BY t.n;
